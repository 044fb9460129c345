//! The administrator sets what a policy's binding does: installing again keeps that.

use serde_json::Value;

use crate::dynamic::Dynamic;

const ACTIONS: &str = "/spec/validationActions";

/// Copies the `validationActions` that are `there` into `body`, if both are bindings. Whether that changed them.
///
/// They are a set, and an apply removes only those that an earlier apply added; the API server refuses `Deny` beside `Warn`.
pub(super) fn keep_actions(body: &mut Value, there: &Dynamic) -> bool {
    let (Some(wanted), Some(there)) = (body.pointer_mut(ACTIONS), there.0.data.pointer(ACTIONS)) else {
        return false;
    };
    let kept = wanted != there;
    wanted.clone_from(there);
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::member;

    fn kept(there: &Value) -> (bool, Value) {
        let [_, binding] = member::policy();
        let (mut body, mut found) = (binding.body.clone(), binding.body);
        found["spec"]["validationActions"] = there.clone();
        let kept = keep_actions(&mut body, &serde_json::from_value(found).unwrap());
        (kept, body["spec"]["validationActions"].take())
    }

    #[test]
    fn what_the_administrator_set_stays() {
        assert_eq!(kept(&json!(["Deny"])), (false, json!(["Deny"])));
        assert_eq!(kept(&json!(["Warn", "Audit"])), (true, json!(["Warn", "Audit"])));
        let [policy, _] = member::policy();
        let there = serde_json::from_value(policy.body.clone()).unwrap();
        assert!(!keep_actions(&mut policy.body.clone(), &there));
    }
}
