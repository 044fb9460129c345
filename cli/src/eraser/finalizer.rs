//! Takes a finalizer of ours off, and no other one.

use serde_json::json;

use super::Eraser;
use crate::{Error, error::Failure, objects::Object};

/// Takes `finalizer` off the object that was read. The patch holds for the version that was read: others add and take theirs meanwhile.
pub(crate) async fn release(
    here: &mut Eraser<'_>,
    mut object: Object,
    finalizer: &str,
    means: &str,
) -> Result<(), Error> {
    let uid = object.metadata().uid;
    loop {
        let Some(rest) = without(&object, finalizer) else { return Ok(()) };
        let version = object.metadata().resource_version;
        let patch = json!({"metadata": {"finalizers": rest, "resourceVersion": version}});
        match here.change(&object, &patch, means).await {
            Err(error) if error.failure() == Failure::Conflict => {}
            done => return done,
        }
        match here.read(&object).await? {
            Some(again) if again.metadata().uid == uid => object = again,
            // Gone, or another one of that name.
            _ => return Ok(()),
        }
    }
}

/// The finalizers of others, if this one is among them.
fn without(object: &Object, finalizer: &str) -> Option<Vec<String>> {
    let mut finalizers = object.metadata().finalizers.unwrap_or_default();
    let before = finalizers.len();
    finalizers.retain(|held| held != finalizer);
    (finalizers.len() < before).then_some(finalizers)
}

#[cfg(test)]
mod tests {
    use api::bind::{binding::APIServiceBinding, label::BIND_FINALIZER};
    use serde_json::Value;

    use super::*;
    use crate::eraser::called;

    #[test]
    fn finalizers_of_others_stay() {
        let with = |finalizers: Value| Object {
            body: json!({"metadata": {"name": "mango", "finalizers": finalizers}}),
            namespace: None,
            ..called::<APIServiceBinding>("", "mango")
        };
        let left = without(&with(json!(["x/y", BIND_FINALIZER, "orphan"])), BIND_FINALIZER);
        assert_eq!(left, Some(vec!["x/y".to_owned(), "orphan".to_owned()]));
        assert_eq!(without(&with(json!(["x/y"])), BIND_FINALIZER), None);
        assert_eq!(without(&with(Value::Null), BIND_FINALIZER), None);
    }
}
