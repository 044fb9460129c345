//! What a pass did last: pure.

use std::mem::{Discriminant, discriminant};

use kit::custom::Custom;
use kube::ResourceExt;

use super::{entry::Pair, plan::Step};

/// Versions of the object and of its copy.
type Versions = [Option<String>; 2];

/// The last step of a pass, and what it was decided from.
#[derive(Default)]
pub(super) struct Trail(Option<(Versions, Discriminant<Step>)>);

impl Trail {
    /// Whether the step is worth doing: not the same again for the same, where what was written did not enter and the watch is about to
    /// tell. A write that changed nothing leaves the versions as they are, and another step follows.
    pub(super) fn goes_on(&mut self, pair: &Pair, step: &Step) -> bool {
        let versions = [version(pair.here.as_deref()), version(pair.there.as_deref())];
        let now = (versions, discriminant(step));
        self.0.replace(now.clone()) != Some(now)
    }
}

fn version<S: 'static>(object: Option<&Custom<S>>) -> Option<String> {
    object.and_then(ResourceExt::resource_version)
}

#[cfg(test)]
mod tests {
    use api::bind::mapping::Place;
    use serde_json::{Map, Value, json};

    use super::*;

    #[test]
    fn after_a_write_that_changed_nothing_another_step_follows_but_not_the_same() {
        let object = |version: &str| json!({"metadata": {"name": "foo", "resourceVersion": version}});
        let pair = |here: &str| Pair {
            here: serde_json::from_value(object(here)).ok().map(std::sync::Arc::new),
            ..Pair::default()
        };
        let apply = || Step::Apply(Place::within("there", "foo"), json!({}));
        let mut trail = Trail::default();
        assert!(trail.goes_on(&pair("7"), &apply()));
        assert!(trail.goes_on(&pair("7"), &Step::Status(Some(Value::Null))));
        assert!(trail.goes_on(&pair("7"), &Step::Annotate(Map::new())));
        assert!(!trail.goes_on(&pair("7"), &Step::Annotate(Map::new())), "the watch has not told yet");
        assert!(trail.goes_on(&pair("8"), &Step::Annotate(Map::new())));
    }
}
