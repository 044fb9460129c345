//! How many requests of members the API server of the leader runs at once (API Priority and Fairness of Kubernetes): as many as the members need
//! together, since a flood of one of them would use whatever there is more.
//!
//! Reads now and then how many Leases the Common Areas hold, and how many cluster namespaces there are; writes the shares of PriorityLevelConfiguration `freeport-members` where they are
//! fewer than [`shares`]: an administrator who gives more is not overruled. Where the object or the right to it is missing there is nothing to do.
//! Deletes nothing. Safe to run twice: the shares follow from what is there.

use std::time::Duration;

use api::{bind::label as bind, label, name};
use k8s_openapi::api::{
    coordination::v1::Lease, core::v1::Namespace, flowcontrol::v1::PriorityLevelConfiguration,
};
use kit::{
    boot::Env,
    drive::before,
    failure::{Failure, classify},
    write::{Error, Writer},
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;

/// How often it is looked. Who applies the manifests sets the shares back, and members must be able to renew their Leases meanwhile.
const EVERY: Duration = Duration::from_secs(10);
/// Members for each share more. Every member watches Leases and records, and the API server counts a write as wide as it has watchers: a
/// request holds a seat for each ten of them, at most ten, and 0.5 ms of one seat for each of them after it. With 600 seats in all this gives 12 to
/// 30 members, 28 to 100, and 120 to 500: about a hundred writes of records a second beside the renewals of all Leases.
const MEMBERS_PER_SHARE: usize = 8;

/// Shares for so many members.
fn shares(members: usize) -> i32 {
    i32::try_from(1 + members / MEMBERS_PER_SHARE).unwrap_or(i32::MAX)
}

/// The shares to write, if it has fewer.
fn wanted(level: &PriorityLevelConfiguration, members: usize) -> Option<i32> {
    let has = level.spec.limited.as_ref()?.nominal_concurrency_shares?;
    Some(shares(members)).filter(|shares| *shares > has)
}

/// Follows the number of members until the daemon shall stop, if it is the active replica.
pub(crate) async fn run(env: &Env) {
    if !before(&env.stop, env.hold.active()).await {
        return;
    }
    let writer = Writer::new(env.client.clone(), label::LEADER, "local", env.metrics.clone());
    let mut trouble = None;
    while before(&env.stop, tokio::time::sleep(EVERY)).await {
        let now = follow(env, &writer).await.err().map(|error| error.to_string());
        if let Some(error) = now.as_ref().filter(|now| trouble.as_ref() != Some(*now)) {
            tracing::warn!(error, "cannot give members their share of the API server");
        }
        trouble = now;
    }
}

async fn follow(env: &Env, writer: &Writer) -> Result<(), Error> {
    let levels = Api::<PriorityLevelConfiguration>::all(env.client.clone());
    let level = match levels.get_opt(name::MEMBERS_LEVEL).await {
        Err(error) if matches!(classify(&error), Failure::Forbidden(_)) => return Ok(()),
        level => level?,
    };
    let Some(level) = level else { return Ok(()) };
    let (members, unread) = counted(leases(env).await?);
    if let Some(shares) = wanted(&level, members + consumers(env).await?) {
        let version = level.resource_version();
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"limited": {"nominalConcurrencyShares": shares}}});
        match writer.merge(&level, None, patch).await {
            // The next look decides.
            Err(Error::Stale | Error::Gone) => return Ok(()),
            written => written.map(drop)?,
        }
        tracing::info!(members, shares, "members have a larger share of the API server");
    }
    unread.map_or(Ok(()), |error| Err(error.into()))
}

/// About as many members as all Common Areas have, and why not all could be read: those that can have their shares all the same.
fn counted<E>(areas: Vec<Result<usize, E>>) -> (usize, Option<E>) {
    areas.into_iter().fold((0, None), |(sum, unread), area| match area {
        Ok(members) => (sum + members, unread),
        Err(error) => (sum, unread.or(Some(error))),
    })
}

/// The Leases in each Common Area: it is asked for one, and how many there are beside it.
async fn leases(env: &Env) -> kube::Result<Vec<kube::Result<usize>>> {
    let mut all = Vec::new();
    for area in labelled(env, label::COMMON_AREA, label::TRUE).await? {
        let leases = Api::<Lease>::namespaced(env.client.clone(), &area);
        let some = leases.list_metadata(&ListParams::default().limit(1)).await;
        all.push(some.map(|some| {
            let others = some.metadata.remaining_item_count.unwrap_or_default();
            some.items.len() + usize::try_from(others).unwrap_or_default()
        }));
    }
    Ok(all)
}

/// Consumers of API binding, which use the same level: as many as have a cluster namespace.
async fn consumers(env: &Env) -> kube::Result<usize> {
    Ok(labelled(env, bind::BIND, bind::CONTRACT).await?.len())
}

/// Names of Namespaces with this label.
async fn labelled(env: &Env, label: &str, value: &str) -> kube::Result<Vec<String>> {
    let with = ListParams::default().labels(&format!("{label}={value}"));
    let namespaces = Api::<Namespace>::all(env.client.clone()).list_metadata(&with).await?;
    Ok(namespaces.iter().map(ResourceExt::name_any).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_members_and_more_stay() {
        let level = |shares: i32| -> PriorityLevelConfiguration {
            let limited = json!({"nominalConcurrencyShares": shares, "limitResponse": {"type": "Queue"}});
            serde_json::from_value(json!({"metadata": {}, "spec": {"type": "Limited", "limited": limited}}))
                .unwrap()
        };
        assert_eq!([0, 3, 8, 100, 500].map(shares), [1, 1, 2, 13, 63]);
        assert_eq!(wanted(&level(1), 3), None);
        assert_eq!(wanted(&level(1), 100), Some(13));
        assert_eq!(wanted(&level(20), 100), None, "an administrator gave more");
        assert_eq!(counted::<&str>(vec![Ok(3), Err("no"), Ok(4), Err("nor")]), (7, Some("no")));
        let exempt = json!({"metadata": {}, "spec": {"type": "Exempt", "exempt": {}}});
        assert_eq!(wanted(&serde_json::from_value(exempt).unwrap(), 100), None);
    }
}
