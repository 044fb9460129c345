//! Why nothing is done here and what is said is old, where that is so: this cluster has left, or its freeport-member does not run.

use api::{label, lease::LeaseView};
use k8s_openapi::jiff::Timestamp;
use kube::Api;

use super::own_set;
use crate::{
    cluster::Cluster,
    objects::SYSTEM,
    view::{Sign, sign},
};

/// Why nobody acts for this cluster; none if somebody does, or if that may not be read.
pub(super) async fn away(cluster: &Cluster) -> Option<String> {
    let set = own_set(cluster).await.ok()?;
    let leases: Api<LeaseView> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let lease = leases.get_opt(label::MEMBER);
    let lease = cluster.request(format!("read Lease {SYSTEM}/{}", label::MEMBER), lease).await.ok()?;
    why(set.is_some(), lease.as_ref(), Timestamp::now())
}

/// `message`, and why nobody acts for this cluster.
pub(super) async fn explained(cluster: &Cluster, message: String) -> String {
    match away(cluster).await {
        Some(away) => format!("{message}; {away}"),
        None => message,
    }
}

fn why(belongs: bool, lease: Option<&LeaseView>, now: Timestamp) -> Option<String> {
    if !belongs {
        return Some(
            "this cluster is in no ClusterSet: it has left, and what is said here is old".to_owned(),
        );
    }
    match lease.map(|lease| sign(lease, now)) {
        None => Some("freeport-member has never run for this cluster (freeport status)".to_owned()),
        Some(Sign::Silent) => Some(format!(
            "freeport-member of this cluster does not run: Lease {SYSTEM}/{} is not renewed (freeport status)",
            label::MEMBER
        )),
        Some(Sign::Alive | Sign::Ahead(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_does_not_act_is_named() {
        let now: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
        let renewed = |at: &str| -> LeaseView {
            let spec = json!({"holderIdentity": "x", "leaseDurationSeconds": 30, "renewTime": at});
            serde_json::from_value(json!({"metadata": {"name": label::MEMBER}, "spec": spec})).unwrap()
        };
        let (old, new) = (renewed("2026-11-01T11:50:00.000000Z"), renewed("2026-11-01T11:59:55.000000Z"));
        assert_eq!(why(true, Some(&new), now), None);
        let says = |belongs, lease| why(belongs, lease, now).unwrap();
        assert!(says(true, Some(&old)).contains("does not run: Lease freeport-system/freeport-member"));
        assert!(says(true, None).contains("never run"));
        assert!(says(false, Some(&new)).contains("in no ClusterSet"));
    }
}
