//! The administrator sets what a policy's binding does, and whether Pods are created while the webhook is away: installing again keeps
//! that.

use serde_json::Value;

use crate::dynamic::Dynamic;

/// What is kept, and what it is called.
///
/// Actions are a set, and an apply removes only those that an earlier apply added; the API server refuses `Deny` beside `Warn`.
const CHOICES: [(&str, &str); 2] =
    [("/spec/validationActions", "validationActions"), ("/webhooks/0/failurePolicy", "failurePolicy")];

/// Copies what the administrator chose from what is `there` into `body`, if both have it. What that changed.
pub(super) fn keep_choice(body: &mut Value, there: &Dynamic) -> Option<&'static str> {
    CHOICES.into_iter().find_map(|(path, name)| {
        let (wanted, there) = (body.pointer_mut(path)?, there.0.data.pointer(path)?);
        let is_kept = wanted != there;
        wanted.clone_from(there);
        is_kept.then_some(name)
    })
}

/// What the leader raises as members come.
const RAISED: &str = "/spec/limited/nominalConcurrencyShares";

/// Lowers nothing that is `there` and that the leader has raised: the two would take turns.
pub(super) fn keep_raised(body: &mut Value, there: &Dynamic) {
    let (Some(wanted), Some(there)) = (body.pointer_mut(RAISED), there.0.data.pointer(RAISED)) else {
        return;
    };
    if there.as_i64() > wanted.as_i64() {
        wanted.clone_from(there);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::{member, offload::webhook};

    fn kept(there: &Value) -> (bool, Value) {
        let [_, binding] = member::policy();
        let (mut body, mut found) = (binding.body.clone(), binding.body);
        found["spec"]["validationActions"] = there.clone();
        let kept = keep_choice(&mut body, &serde_json::from_value(found).unwrap());
        (kept.is_some(), body["spec"]["validationActions"].take())
    }

    #[test]
    fn shares_that_the_leader_gave_stay_and_fewer_do_not() {
        let shares = |there: i64| {
            let mut body =
                json!({"spec": {"limited": {"nominalConcurrencyShares": 2, "lendablePercent": 0}}});
            let mut found = body.clone();
            found["spec"]["limited"]["nominalConcurrencyShares"] = json!(there);
            found["metadata"] = json!({});
            keep_raised(&mut body, &serde_json::from_value(found).unwrap());
            body["spec"]["limited"]["nominalConcurrencyShares"].clone()
        };
        assert_eq!((shares(5), shares(1)), (json!(5), json!(2)));
    }

    #[test]
    fn what_the_administrator_set_stays() {
        assert_eq!(kept(&json!(["Deny"])), (false, json!(["Deny"])));
        assert_eq!(kept(&json!(["Warn", "Audit"])), (true, json!(["Warn", "Audit"])));
        let [policy, _] = member::policy();
        let there = serde_json::from_value(policy.body.clone()).unwrap();
        assert_eq!(keep_choice(&mut policy.body.clone(), &there), None);
        let (mut wanted, mut ignores) =
            (webhook::configuration(None).body, webhook::configuration(None).body);
        ignores["webhooks"][0]["failurePolicy"] = json!("Ignore");
        let there = serde_json::from_value(ignores).unwrap();
        assert_eq!(keep_choice(&mut wanted, &there), Some("failurePolicy"));
        assert_eq!(wanted["webhooks"][0]["failurePolicy"], "Ignore");
    }
}
