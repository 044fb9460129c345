//! Where a scheduler may bind a Pod, worked out by other means than ours: from the Pod's JSON, on the nodes of the vectors.

use serde_json::Value;

pub(super) struct Node {
    pub(super) name: &'static str,
    labels: &'static [(&'static str, &'static str)],
}

const VIRTUAL: (&str, &str) = ("liqo.io/type", "virtual-node");

pub(super) const NODES: [Node; 6] = [
    Node { name: "l1", labels: &[("storage", "ssd"), ("zone", "a")] },
    Node { name: "l2", labels: &[("provider", "AWS"), ("zone", "b"), ("cores", "8")] },
    Node { name: "l3", labels: &[("region", "A")] },
    Node { name: "v1", labels: &[VIRTUAL, ("region", "A"), ("provider", "AWS"), ("cores", "64")] },
    Node { name: "v2", labels: &[VIRTUAL, ("region", "C"), ("NotProvider", "x"), ("storage", "hdd")] },
    Node { name: "v3", labels: &[VIRTUAL, ("region", "B"), ("provider", "GKE"), ("cores", "4")] },
];

impl Node {
    pub(super) fn is_virtual(&self) -> bool {
        self.labels.contains(&VIRTUAL)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// Whether one of the terms matches; no list of them matches everything.
    pub(super) fn matches(&self, terms: &Value) -> bool {
        let list = |term: &Value, field: &str| term[field].as_array().cloned().unwrap_or_default();
        terms.as_array().is_none_or(|terms| {
            terms.iter().any(|term| {
                let (labels, fields) = (list(term, "matchExpressions"), list(term, "matchFields"));
                let is_empty = labels.is_empty() && fields.is_empty();
                !is_empty
                    && labels.iter().all(|one| fits(one, self.label(one["key"].as_str().unwrap())))
                    && fields.iter().all(|one| fits(one, Some(self.name)))
            })
        })
    }

    /// Whether the Pod may be bound here: by its required affinity, and the taint of virtual nodes.
    pub(super) fn takes(&self, pod: &Value) -> bool {
        let required =
            &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let tolerations = pod["spec"]["tolerations"].as_array();
        let tolerates = tolerations
            .into_iter()
            .flatten()
            .any(|one| one["operator"] == "Exists" && one["key"] == "virtual-node.liqo.io/not-allowed");
        let by_runtime_class = pod["spec"]["runtimeClassName"] == "liqo";
        let reachable = if by_runtime_class { self.is_virtual() } else { !self.is_virtual() || tolerates };
        reachable && self.matches(&required["nodeSelectorTerms"])
    }
}

fn fits(requirement: &Value, value: Option<&str>) -> bool {
    let values: Vec<&str> =
        requirement["values"].as_array().into_iter().flatten().map(|value| value.as_str().unwrap()).collect();
    let compared = |larger: bool| {
        let number = value.and_then(|value| value.parse::<i64>().ok());
        let bound: i64 = values[0].parse().unwrap();
        number.is_some_and(|number| if larger { number > bound } else { number < bound })
    };
    match requirement["operator"].as_str().unwrap() {
        "In" => value.is_some() && values.contains(&value.unwrap()),
        "NotIn" => value.is_none() || !values.contains(&value.unwrap()),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(true),
        "Lt" => compared(false),
        other => panic!("{other}"),
    }
}
