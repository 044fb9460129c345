//! The leader's half of leaving: our records are withdrawn and removed, then announce and Lease deleted.

use std::time::{Duration, Instant};

use api::{
    announce::MemberClusterAnnounce,
    antrea::Members,
    label,
    lease::{STALE, Settled},
    membership::Wire,
    name,
};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{
    boot::Env,
    failure::{Failure, classify},
    objects::Change,
    write::{Error, Writer},
};
use kube::{Api, Client, api::ListParams};
use presence::{
    lease::{Keeper, Presence},
    restore::RestoreDetector,
};
use tokio::{sync::watch, task::JoinSet};

use super::{all, writer};
use crate::{
    membership::Target,
    service::{entry::Unexported, export::Exporting, knowledge::Knowledge, view::OwnRecord},
};

/// The leader deletes withdrawn records within moments. That they are withdrawn is enough if it is away.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked whether it has.
const LOOK: Duration = Duration::from_secs(1);

/// Takes back everything we said to the leader.
pub(super) async fn withdraw(env: &Env, target: &Target, client: &Client) -> Result<(), Failure> {
    match target.wire.unwrap_or_default() {
        Wire::Freeport => withdraw_under_lease(env, target, client).await,
        // There is no Lease: that the ID is ours the token says. Its leader deletes what is left once our announce goes.
        Wire::Antrea => {
            let there = writer(env, client.clone(), "leader");
            withdraw_records(env, target, client, &there).await?;
            delete_announce(target, client, &there).await
        }
    }
}

/// While our Lease keeps the ID ours.
async fn withdraw_under_lease(env: &Env, target: &Target, client: &Client) -> Result<(), Failure> {
    let leases = Api::<Lease>::namespaced(client.clone(), &target.us.common_area);
    let (presence, mut present) = watch::channel(Presence::Unknown);
    let lease = name::member_lease(&target.us.cluster);
    let mut tasks = JoinSet::new();
    // Never settled: what we remove is not to be taken for what we vouch for.
    let detector = RestoreDetector::new(leases.clone(), lease.clone());
    let keeper = Keeper { detector, us: env.holder.clone(), pace: env.pace };
    tasks.spawn(keeper.keep(|| Settled::No, presence));
    let now = presence_in_time(&mut present).await;
    match now {
        Presence::Held => {}
        Presence::Taken { holder } => {
            tracing::warn!(holder, "another cluster uses our ID: nothing at the leader is ours to withdraw");
            return Ok(());
        }
        Presence::Failing { failure } => return Err(failure),
        Presence::Unknown | Presence::Restored => return Err(Failure::Unreachable("no answer in time")),
    }
    let there = writer(env, client.clone(), "leader");
    withdraw_records(env, target, client, &there).await?;
    tasks.shutdown().await;

    delete_announce(target, client, &there).await?;
    let ours = |lease: &Lease| {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        holder.split_once('/').is_some_and(|(uid, _)| uid == env.holder.cluster_uid)
    };
    match leases.get_opt(&lease).await.map_err(|error| classify(&error))?.filter(ours) {
        Some(lease) => there.delete(&lease, true).await.map_err(|error| failure(&error)),
        None => Ok(()),
    }
}

async fn delete_announce(target: &Target, client: &Client, there: &Writer) -> Result<(), Failure> {
    let announces = Api::<MemberClusterAnnounce>::namespaced(client.clone(), &target.us.common_area);
    match announces.get_opt(&name::announce(&target.us.cluster)).await {
        Ok(Some(announce)) => there.delete(&announce, false).await.map_err(|error| failure(&error)),
        Ok(None) => Ok(()),
        Err(error) if classify(&error) == Failure::KindMissing => Ok(()),
        Err(error) => Err(classify(&error)),
    }
}

/// How it stands with our Lease. Another holder has the time to show that it lives: one that does not, as of a cluster that was
/// rebuilt since, is replaced.
async fn presence_in_time(present: &mut watch::Receiver<Presence>) -> Presence {
    let known = present.wait_for(|now| !matches!(now, Presence::Unknown | Presence::Taken { .. }));
    let known = tokio::time::timeout(2 * STALE, known).await.map(|now| now.map(|now| now.clone()));
    match known {
        Ok(now) => now.unwrap_or(Presence::Unknown),
        Err(_) => present.borrow().clone(),
    }
}

/// Withdraws our Service records and removes our slice records, as [`Exporting`] does when no export is left, and gives the
/// leader time to delete what is withdrawn.
async fn withdraw_records(
    env: &Env,
    target: &Target,
    client: &Client,
    there: &Writer,
) -> Result<(), Failure> {
    let records = Api::<OwnRecord>::namespaced(client.clone(), &target.us.common_area);
    let own = ListParams::default().labels(&format!("{}={}", label::SOURCE_CLUSTER_ID, target.us.cluster));
    let begun = Instant::now();
    loop {
        let records = records.list(&own).await.map_err(|error| classify(&error))?.items;
        let knowledge = match target.wire.unwrap_or_default() {
            Wire::Freeport => Knowledge::default(),
            Wire::Antrea => Knowledge::under_antrea(&target.us.cluster),
        };
        knowledge.services.change(Change::Reset(records));
        let services = knowledge.services.keys();
        // Leaving is a decision, whatever became of the ServiceExports.
        for service in &services {
            knowledge.services.note(service, |entry| entry.unexported = Some(Unexported::Decided));
        }
        if services.is_empty() {
            return Ok(());
        }
        let exporting = Exporting {
            us: target.us.clone(),
            knowledge,
            antrea: Members::default(),
            local: env.client.clone(),
            writer: there.clone(),
            events: env.events.clone(),
        };
        let withdraw = |service| {
            let exporting = exporting.clone();
            async move { Box::pin(exporting.reconcile(service)).await.map(drop) }
        };
        match all(services.into_iter().map(withdraw)).await {
            Ok(()) if begun.elapsed() >= PATIENCE => {
                tracing::info!(
                    "the leader has not deleted our withdrawn records yet; it will when it is back"
                );
                return Ok(());
            }
            // The leader was faster, or has said something about a record: the next list shows it.
            Ok(()) | Err(Error::Stale | Error::Gone) => tokio::time::sleep(LOOK).await,
            Err(error) => return Err(failure(&error)),
        }
    }
}

fn failure(error: &Error) -> Failure {
    match error {
        Error::Unreachable(error) => classify(error),
        Error::Gone => Failure::NamespaceMissing,
        other => Failure::Other(other.to_string()),
    }
}
