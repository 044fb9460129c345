//! Whether the ClusterSet of a Common Area, and the ClusterClaims beside it, say what can be: pure.

use api::cluster_set::ClusterSetSpec;

/// What the ClusterClaims of the Common Area say of the cluster that leads.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// `id.k8s.io`.
    pub(super) id: Option<String>,
    /// `clusterset.k8s.io`.
    pub(super) cluster_set: Option<String>,
}

/// What is wrong with the ClusterSet `name`: `older` is another one there, and `is_of_other` says whether another cluster takes part
/// under an ID.
pub(super) fn objection(
    name: &str,
    spec: &Result<Option<ClusterSetSpec>, String>,
    older: Option<String>,
    claims: &Claims,
    is_of_other: impl Fn(&str) -> bool,
) -> Option<String> {
    if let Some(older) = older {
        return Some(format!("ClusterSet {older} is older, and a Common Area holds one: delete this one"));
    }
    let spec = match spec {
        Ok(Some(spec)) => spec,
        Ok(None) => return Some("spec is missing".into()),
        Err(error) => return Some(format!("spec cannot be read: {error}")),
    };
    let filled = |id: &String| Some(id.clone()).filter(|id| !id.is_empty());
    let Some(own) = filled(&spec.cluster_id).or_else(|| claims.id.clone()) else {
        return Some("this cluster has no ID: set spec.clusterID, or create ClusterClaim id.k8s.io".into());
    };
    let leaders: Vec<_> =
        spec.leaders.iter().map(|leader| leader.cluster_id.clone().unwrap_or_default()).collect();
    match leaders.as_slice() {
        [leader] if *leader == own => {}
        all if all.iter().all(String::is_empty) => {
            return Some(format!("spec.leaders names no cluster; this one, which leads, is {own}"));
        }
        [leader] => {
            return Some(format!("spec.leaders names {leader}, and this cluster, which leads, is {own}"));
        }
        several => {
            let named = |id: &String| if id.is_empty() { "one without an ID".to_owned() } else { id.clone() };
            let several = several.iter().map(named).collect::<Vec<_>>().join(", ");
            return Some(format!(
                "spec.leaders names several clusters ({several}); this one, which leads, is {own}"
            ));
        }
    }
    if let Some(other) = claims.cluster_set.as_ref().filter(|claimed| *claimed != name) {
        return Some(format!("ClusterClaim clusterset.k8s.io names {other}, and this ClusterSet is {name}"));
    }
    let said = [("spec.clusterID", Some(&own)), ("ClusterClaim id.k8s.io", claims.id.as_ref())];
    let taken = said.into_iter().find_map(|(place, id)| Some((place, id.filter(|id| is_of_other(id))?)));
    taken.map(|(place, id)| format!("{place} is {id}, which is the ID of a member in another cluster"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn says(spec: Value, claims: &Claims) -> Option<String> {
        let spec = serde_json::from_value(spec).map_err(|error| error.to_string());
        objection("demo", &spec, None, claims, |id| id == "east")
    }

    #[test]
    fn c_a_cluster_set_that_names_its_own_leader_is_valid() {
        let none = Claims::default();
        let led_by = |id: &str, leaders: &[&str]| {
            let leaders: Vec<_> = leaders.iter().map(|id| json!({"clusterID": id})).collect();
            json!({"clusterID": id, "leaders": leaders})
        };
        assert_eq!(says(led_by("hub", &["hub"]), &none), None);
        let claims = |id: Option<&str>, set: Option<&str>| Claims {
            id: id.map(str::to_owned),
            cluster_set: set.map(str::to_owned),
        };
        assert_eq!(says(led_by("", &["hub"]), &claims(Some("hub"), Some("demo"))), None);
        for (spec, claims, why) in [
            (json!(null), none.clone(), "missing"),
            (json!("?"), none.clone(), "cannot be read"),
            (json!({"leaders": [{}]}), none.clone(), "this cluster has no ID"),
            (led_by("hub", &[]), none.clone(), "names no cluster"),
            (json!({"clusterID": "hub", "leaders": [{}]}), none.clone(), "names no cluster"),
            (led_by("hub", &["other"]), none.clone(), "names other"),
            (led_by("hub", &["hub", "other"]), none.clone(), "several clusters (hub, other)"),
            (led_by("hub", &["hub", ""]), none.clone(), "several clusters (hub, one without an ID)"),
            (led_by("hub", &["hub"]), claims(None, Some("else")), "clusterset.k8s.io names else"),
            (led_by("hub", &["hub"]), claims(Some("east"), None), "id.k8s.io is east"),
            (led_by("east", &["east"]), none.clone(), "spec.clusterID is east"),
        ] {
            let said = says(spec, &claims).unwrap_or_default();
            assert!(said.contains(why), "{why}: {said}");
        }
        let spec = Ok(serde_json::from_value(led_by("hub", &["hub"])).unwrap());
        let second = objection("demo", &spec, Some("first".into()), &none, |_| false);
        assert!(second.unwrap().contains("ClusterSet first is older"));
    }
}
