//! No endpoint appears that its cluster has not had, and exported, within the last [`LATE`].

use std::collections::BTreeSet;

use api::label;

use super::{
    Invariant, LATE, Write,
    exports::{Exports, ready},
};

/// See the module.
#[derive(Default)]
pub(super) struct Fresh(Exports);

impl Invariant for Fresh {
    fn name(&self) -> &'static str {
        "fresh"
    }

    fn check(&mut self, write: &Write<'_>) -> Result<(), String> {
        self.0.note(write);
        let Some((service, from)) = write.imported().filter(|_| write.is_by(label::MEMBER, write.cluster))
        else {
            return Ok(());
        };
        let (before, after) = (ready(write.before), ready(write.after));
        let new: BTreeSet<_> = after.difference(&before).collect();
        let since = write.at.saturating_sub(LATE);
        let offer = self.0.get(from, &service);
        let is_late = |address: &&&String| {
            offer.is_none_or(|offer| !offer.had(address, since) || !offer.was_exported(since))
        };
        match new.iter().find(is_late) {
            Some(address) => {
                Err(format!("{from} has not exported {address} of {service} for {} s", LATE.as_secs()))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::invariant::{
        Author,
        testkit::{by, write},
    };

    #[test]
    fn an_endpoint_of_long_ago_does_not_appear() {
        let (user, member) = (Author::Other, by(label::MEMBER, "west"));
        let object = json!({});
        let slice = |labels: Value, address: &str| json!({"metadata": {"labels": labels}, "endpoints": [{"addresses": [address]}]});
        let source = |address: &str| slice(json!({label::SERVICE_NAME: "web"}), address);
        let imported =
            slice(json!({label::MCS_SERVICE_NAME: "web", label::MCS_SOURCE_CLUSTER: "east"}), "10.1.1.1");
        let mut fresh = Fresh::default();
        let mut at = |second: u64, write: Write<'_>| {
            fresh.check(&Write { at: Duration::from_secs(second), ..write }).is_ok()
        };
        assert!(at(1, Write { after: Some(&object), ..write("east", "services", &user) }));
        assert!(at(1, Write { after: Some(&object), ..write("east", "serviceexports", &user) }));
        assert!(at(1, Write { after: Some(&source("10.1.1.1")), ..write("east", "endpointslices", &user) }));
        let import = Write { after: Some(&imported), ..write("west", "endpointslices", &member) };
        assert!(at(2, import));
        assert!(at(3, Write { after: Some(&source("10.1.1.2")), ..write("east", "endpointslices", &user) }));
        assert!(at(60, import) && !at(64, import));
        assert!(at(64, Write { before: Some(&imported), ..import }), "it was there before");
        assert!(at(64, Write { author: &user, ..import }));
    }
}
