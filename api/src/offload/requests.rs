//! What Pods request of each resource: as kube-scheduler counts it, on the raw JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::quantity::nanos;

/// Resource of which each Pod takes one.
const PODS: &str = "pods";

/// Amounts by the name of the resource, in billionths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests(BTreeMap<String, i128>);

impl Requests {
    /// What a Pod of this spec takes of a Node: its containers at once, or the greediest of those that run before them; its overhead;
    /// and one of `pods`. What is not an amount counts as nothing: no API server takes such a Pod.
    pub fn of_pod(spec: &Value) -> Self {
        let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
        // Of init containers the ones that go on, and the most that is there at once while the others run.
        let (mut beside, mut before) = (Self::default(), Self::default());
        for container in list("initContainers") {
            let own = Self::of(container.get("resources"));
            if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
                beside.add(&own);
                before.raise(&beside);
            } else {
                let mut now = beside.clone();
                now.add(&own);
                before.raise(&now);
            }
        }
        let mut all = beside;
        list("containers").for_each(|container| all.add(&Self::of(container.get("resources"))));
        all.raise(&before);
        // What is requested of the Pod as a whole stands for what its containers request; a limit does where they request nothing.
        let whole = |field: &str| Self::listed(spec.pointer(&format!("/resources/{field}")));
        for (resource, amount) in whole("limits").0 {
            all.0.entry(resource).or_insert(amount);
        }
        all.0.extend(whole("requests").0);
        all.add(&Self::listed(spec.get("overhead")));
        all.add(&Self([(PODS.to_owned(), 1_000_000_000)].into()));
        all
    }

    /// What is requested; where only a limit is set, the API server requests that.
    fn of(resources: Option<&Value>) -> Self {
        let field = |field: &str| Self::listed(resources.and_then(|resources| resources.get(field)));
        let mut all = field("limits");
        all.0.extend(field("requests").0);
        all
    }

    fn listed(amounts: Option<&Value>) -> Self {
        let amount = |(resource, amount): (&String, &Value)| {
            let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            Some((resource.clone(), nanos(&text)?))
        };
        Self(
            amounts
                .and_then(Value::as_object)
                .map(Map::iter)
                .into_iter()
                .flatten()
                .filter_map(amount)
                .collect(),
        )
    }

    /// Both at once.
    pub fn add(&mut self, other: &Self) {
        for (resource, amount) in &other.0 {
            let sum = self.0.entry(resource.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    /// Each as much as the greater of both.
    fn raise(&mut self, other: &Self) {
        for (resource, amount) in &other.0 {
            let most = self.0.entry(resource.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }

    /// How much of the resource, in billionths.
    pub fn of_resource(&self, resource: &str) -> i128 {
        self.0.get(resource).copied().unwrap_or(0)
    }

    /// Resources and how much of each, in billionths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i128)> {
        self.0.iter().map(|(resource, amount)| (resource.as_str(), *amount))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cpu(spec: &Value) -> i128 {
        Requests::of_pod(spec).of_resource("cpu") / 1_000_000
    }

    fn wants(millis: u32) -> Value {
        json!({"resources": {"requests": {"cpu": format!("{millis}m")}}})
    }

    fn sidecar(millis: u32) -> Value {
        let mut container = wants(millis);
        container["restartPolicy"] = json!("Always");
        container
    }

    #[test]
    fn a_pod_takes_what_kube_scheduler_says_it_does() {
        assert_eq!(cpu(&json!({"containers": [wants(100), wants(200)]})), 300);
        let (small, large) = (wants(50), wants(500));
        assert_eq!(cpu(&json!({"containers": [wants(100)], "initContainers": [small, large]})), 500);
        let before = json!([wants(300), sidecar(100), wants(250)]);
        assert_eq!(cpu(&json!({"containers": [wants(100)], "initContainers": before})), 350);
        assert_eq!(cpu(&json!({"containers": [wants(400)], "initContainers": before})), 500);
        assert_eq!(cpu(&json!({"containers": [wants(100)], "overhead": {"cpu": "0.25"}})), 350);
        let mut whole = json!({"containers": [wants(100)], "resources": {"limits": {"cpu": 2, "memory": 1}}});
        assert_eq!((cpu(&whole), Requests::of_pod(&whole).of_resource("memory")), (100, 1_000_000_000));
        whole["resources"]["requests"] = json!({"cpu": 1});
        assert_eq!(cpu(&whole), 1000);
        let limited =
            json!({"resources": {"limits": {"cpu": "1", "memory": "1"}, "requests": {"memory": "x"}}});
        assert_eq!(cpu(&json!({"containers": [limited]})), 1000);
        for odd in
            [json!(null), json!(7), json!({"containers": 7}), json!({"containers": [7, {"resources": []}]})]
        {
            assert_eq!(Requests::of_pod(&odd).iter().collect::<Vec<_>>(), [("pods", 1_000_000_000)], "{odd}");
        }
    }
}
