//! Whose leader it is that a new membership talks to: asks for Leases and records of the Common Area, the Namespace that it is, and
//! what is imported here. Writes nothing.
//!
//! A leader of Antrea's lets its members read all records, and no Lease: there are none. So our token is refused Leases (403), may
//! list records, and that is the same after a pause. Any other answer (not found, no answer, an error) says nothing, and is
//! waited out. Nor is it a leader of Antrea's, but one of ours whose Role somebody is at, where the Namespace has our label, some
//! record is of a kind that Antrea does not know, or what is imported here was measured by a leader of ours. A leader of ours whose
//! Role lacks just Leases, in a Common Area that is still empty, to a member that never imported anything: that alone could be
//! mistaken, and nothing is lost there.
//!
//! What was found out is noted with the membership, and is not asked again: to talk to another kind of leader, leave and join.

use std::time::Duration;

use api::{
    label,
    mcs::ServiceImport,
    resource_export::{ENDPOINT_SLICE, ResourceExport},
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kit::{
    boot::Env,
    failure::{Failure, classify},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PartialObjectMeta},
};
use presence::lease::Presence;
use tokio::sync::watch;

use crate::membership::Target;

/// Between two looks: nobody applies a Role in parts for that long.
const PAUSE: Duration = Duration::from_secs(10);

/// What tells whose leader it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signs {
    /// Leases are refused to us.
    no_leases: bool,
    /// The Namespace has the label of our Common Areas; `None` where we may not read that.
    labelled: Option<bool>,
    /// There is a record that only a member of ours writes to a leader of ours.
    has_our_records: bool,
    /// Something here was imported from a leader of ours.
    had_our_hub: bool,
}

impl Signs {
    fn are_of_antrea(self) -> bool {
        self.no_leases && self.labelled != Some(true) && !self.has_our_records && !self.had_our_hub
    }
}

/// Returns once it is certain that a leader of Antrea's leads: never, if our Lease was ours but once. Looks only while that is refused.
pub(super) async fn antrea_leads(
    env: &Env,
    target: &Target,
    client: &Client,
    mut present: watch::Receiver<Presence>,
) {
    let refused = |now: &Presence| matches!(now, Presence::Failing { failure: Failure::Forbidden(_) });
    let mut in_a_row = 0;
    loop {
        let tells = present.wait_for(|now| *now == Presence::Held || refused(now)).await;
        let is_refused = tells.is_ok_and(|now| refused(&now));
        if !is_refused {
            std::future::pending::<()>().await;
        }
        let signs = look(env, &target.us.common_area, client).await;
        tracing::info!(?signs, "our Lease is refused: is the leader Antrea's?");
        in_a_row = if signs.is_ok_and(Signs::are_of_antrea) { in_a_row + 1 } else { 0 };
        if in_a_row == 2 {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            // What is ours now is not Antrea's later.
            () = held(&mut present) => std::future::pending().await,
        }
    }
}

async fn held(present: &mut watch::Receiver<Presence>) {
    drop(present.wait_for(|now| *now == Presence::Held).await);
}

async fn look(env: &Env, area: &str, client: &Client) -> Result<Signs, Failure> {
    let some = ListParams::default().limit(100);
    let leases = Api::<Lease>::namespaced(client.clone(), area).list_metadata(&some).await;
    let no_leases = match leases.map_err(|error| classify(&error)) {
        Ok(_) => false,
        Err(Failure::Forbidden(_)) => true,
        Err(failure) => return Err(failure),
    };
    let ours = some.clone().labels(&format!("{}={ENDPOINT_SLICE}", label::SOURCE_KIND));
    let records = Api::<PartialObjectMeta<ResourceExport>>::namespaced(client.clone(), area);
    let records = records.list(&ours).await.map_err(|error| classify(&error))?;
    let namespace = Api::<PartialObjectMeta<Namespace>>::all(client.clone()).get(area).await;
    let labelled = match namespace.map_err(|error| classify(&error)) {
        Ok(namespace) => Some(namespace.labels().get(label::COMMON_AREA).is_some_and(|is| is == label::TRUE)),
        Err(Failure::Forbidden(_)) => None,
        Err(failure) => return Err(failure),
    };
    let made = ListParams::default().labels(&format!("{}={}", label::MANAGED_BY, label::FREEPORT));
    let imports = Api::<PartialObjectMeta<ServiceImport>>::all(env.client.clone());
    let imports = imports.list(&made).await.map_err(|error| classify(&error))?;
    let of_ours = |import: &PartialObjectMeta<ServiceImport>| {
        let hub = import.annotations().get(label::HUB).filter(|hub| !hub.is_empty());
        hub.is_some_and(|hub| !hub.starts_with(label::HUB_OF_ANTREA))
    };
    let (has_our_records, had_our_hub) = (!records.items.is_empty(), imports.items.iter().any(of_ours));
    Ok(Signs { no_leases, labelled, has_our_records, had_our_hub })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_common_area_without_any_sign_of_ours_is_antreas() {
        let antrea = Signs { no_leases: true, labelled: None, has_our_records: false, had_our_hub: false };
        assert!(antrea.are_of_antrea());
        assert!(Signs { labelled: Some(false), ..antrea }.are_of_antrea());
        for ours in [
            Signs { no_leases: false, ..antrea },
            Signs { labelled: Some(true), ..antrea },
            Signs { has_our_records: true, ..antrea },
            Signs { had_our_hub: true, ..antrea },
        ] {
            assert!(!ours.are_of_antrea(), "{ours:?}");
        }
    }
}
