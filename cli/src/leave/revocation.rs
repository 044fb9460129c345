//! The leader's side, for a member whose access is revoked. Deletes that, and says so only where nothing of it is left.

use api::{label, name};
use k8s_openapi::{api::core::v1::ServiceAccount, jiff::Timestamp};

use super::{
    LeaveOptions, lease,
    removal::{clear, leader_of},
    take_access,
};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, list},
    eraser::{Eraser, Say},
    objects::{Object, access, area},
    view::live_holder,
};

/// Takes the access of member `id` away, and unless what it exports is to stay removes it at the leader.
pub(super) async fn revoke(
    leader: &KubeContext,
    (set, id): (&str, &str),
    (yes, keep): (bool, bool),
    options: &LeaveOptions,
    say: Say<'_>,
) -> Result<(), Error> {
    let leader = leader_of(leader, set, id, options, &mut *say).await?;
    let found = lease(&leader, &area::name(set), id).await?;
    let holder = found.as_ref().and_then(|lease| live_holder(lease, Timestamp::now()));
    if let Some(holder) = holder.filter(|_| !yes && !options.dry_run) {
        return Err(leader.unconfirmed(format!(
            "member {id:?} is alive (Lease {}/{} is held by {holder:?}), and would lose its access: say so with --yes, or run `freeport leave` in \
             that cluster",
            area::name(set),
            name::member_lease(id)
        )));
    }
    take_access(&leader, set, id, options.dry_run, &mut *say).await?;
    check_is_out(&leader, set, id, options, &mut *say).await?;
    if keep {
        return Ok(());
    }
    clear(&leader, set, id, options, say).await
}

/// Says that the member is out. Refuses where an account of it was left.
async fn check_is_out(
    leader: &Cluster,
    set: &str,
    id: &str,
    options: &LeaveOptions,
    say: Say<'_>,
) -> Result<(), Error> {
    let area = area::name(set);
    let mut there = Eraser::new(leader, options.dry_run, say);
    let accounts = there.list::<ServiceAccount>(Some(&area), "").await?;
    let left: Vec<_> =
        accounts.iter().filter(|account| is_left(account, id)).map(|one| one.name.as_str()).collect();
    if !left.is_empty() {
        let is = if options.dry_run { "would NOT be" } else { "is NOT" };
        return Err(leader.refuse(format!(
            "member {id:?} {is} out: ServiceAccounts of it in Namespace {area} are not Freeport's (no label {}={}) and stay: {}. Their tokens are good, \
             with whatever rights others gave them. Take each away where it comes from, and here (kubectl --context {} -n {area} delete serviceaccount \
             NAME), and run this again",
            label::MANAGED_BY,
            label::FREEPORT,
            list(&left),
            leader.name
        )));
    }
    if !options.dry_run {
        there.say(&format!(
            "member {id:?} is out: its tokens are refused within 10 s. It keeps what it imported, and says TokenRefused; a watch that it has open may \
             tell it news until the API server ends that. `freeport join` brings it back"
        ));
    }
    Ok(())
}

/// Whether it is an account of member `id` that Freeport did not create: by its name, or by what Antrea's documentation has one say.
fn is_left(account: &Object, id: &str) -> bool {
    let metadata = account.metadata();
    let says = metadata.annotations.unwrap_or_default().get(label::CLUSTER_ID).is_some_and(|says| says == id);
    (account.name == access::account(id) || says) && !account.is_ours()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::eraser::called;

    #[test]
    fn a_member_whose_account_another_tool_made_is_not_out() {
        let account = |name: &str, metadata: Value| Object {
            body: json!({"metadata": metadata}),
            ..called::<ServiceAccount>("clusterset-demo", name)
        };
        let of_east = |labels: Value, annotations: Value| {
            let metadata = json!({"labels": labels, "annotations": annotations});
            ["freeport-member-east", "other"].map(|name| is_left(&account(name, metadata.clone()), "east"))
        };
        let (ours, argo) = (
            json!({"app.kubernetes.io/managed-by": "freeport"}),
            json!({"app.kubernetes.io/managed-by": "argo"}),
        );
        let east = json!({"multicluster.antrea.io/cluster-id": "east"});
        assert_eq!(of_east(ours, east.clone()), [false, false], "it is about to go");
        assert_eq!(of_east(argo.clone(), json!({})), [true, false]);
        assert_eq!(of_east(argo, east), [true, true], "whatever it is called");
        assert_eq!(of_east(json!({}), json!({"multicluster.antrea.io/cluster-id": "west"})), [true, false]);
    }
}
