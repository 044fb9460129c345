//! Of several replicas of a daemon, only the one that holds the Lease writes anything but Events.

use std::collections::BTreeMap;

use api::{lease::replica_of, name};
use cli::objects::SYSTEM;

use super::{Invariant, Write};

/// See the module.
#[derive(Default)]
pub(super) struct Active {
    /// The replica that holds the Lease, by its cluster and name. After a restore, or a write of somebody else, nobody does until a replica writes it.
    holders: BTreeMap<(String, String), String>,
}

impl Active {
    fn note(&mut self, write: &Write<'_>) {
        let lease = (write.cluster.to_owned(), write.name.to_owned());
        let holder = write.after.and_then(|lease| lease["spec"]["holderIdentity"].as_str());
        match holder.filter(|holder| !holder.is_empty() && write.daemon().is_some()) {
            Some(holder) => drop(self.holders.insert(lease, replica_of(holder).to_owned())),
            None => drop(self.holders.remove(&lease)),
        }
    }
}

impl Invariant for Active {
    fn name(&self) -> &'static str {
        "active"
    }

    fn check(&mut self, write: &Write<'_>) -> Result<(), String> {
        if write.kind == "leases"
            && write.namespace == SYSTEM
            && write.name.ends_with(&name::active_lease(""))
        {
            self.note(write);
            return Ok(());
        }
        // A replica that ends gives up the Lease at once, and then sends what it still has to tell of its time.
        if write.kind == "events" {
            return Ok(());
        }
        let Some((by, replica)) = write.daemon().and_then(|by| Some((by, by.replica.as_ref()?))) else {
            return Ok(());
        };
        match self.holders.get(&(by.cluster.clone(), name::active_lease(by.program))) {
            Some(holder) if holder != replica => Err(format!("replica {holder} is the active one")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::invariant::{
        Author,
        testkit::{by, replica, write},
    };

    #[test]
    fn a_replica_writes_nothing_while_another_one_holds_the_lease() {
        let mut active = Active::default();
        let (one, two) = (replica("east", "east-0"), replica("east", "east-1"));
        let lease = |holder: &str| json!({"spec": {"holderIdentity": holder}});
        let hold = |active: &mut Active, author: &Author, holder: &str| {
            let after = lease(holder);
            let write = Write {
                after: Some(&after),
                namespace: SYSTEM,
                name: "freeport-member-active",
                ..write("east", "leases", author)
            };
            active.check(&write).is_ok()
        };
        let service =
            |active: &mut Active, author: &Author| active.check(&write("leader", "services", author)).is_ok();
        assert!(service(&mut active, &one));
        assert!(
            hold(&mut active, &one, "east-0_x") && service(&mut active, &one) && !service(&mut active, &two)
        );
        assert!(
            hold(&mut active, &two, "east-1_y") && service(&mut active, &two) && !service(&mut active, &one)
        );
        assert!(service(&mut active, &by("freeport-member", "west")));
        assert!(
            hold(&mut active, &Author::Restore, "east-0_x")
                && service(&mut active, &one)
                && service(&mut active, &two)
        );
        assert!(hold(&mut active, &two, "east-1_z") && !service(&mut active, &one));
        assert!(hold(&mut active, &Author::Other, "east-0_x") && service(&mut active, &two));
        assert!(hold(&mut active, &one, "") && service(&mut active, &two));
    }
}
