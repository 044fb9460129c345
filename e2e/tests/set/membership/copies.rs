//! Two clusters with one uid, one credential and one note: a cloned machine, or a backup that runs beside the original (issue 14, A8).
//! Here they are two keepers of one Lease, each with a Lease of its own cluster.

use std::collections::BTreeSet;

use api::lease::{LeaseView, Pace, Settled};
use e2e::{
    fixture::shared,
    waiting::{always, eventually},
};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{hold::Hold, holder::Holder};
use kube::Api;
use presence::{
    kin::Kinship,
    lease::{Keeper, Presence},
    restore::RestoreDetector,
};
use serde_json::json;
use tokio::{sync::watch, task::JoinSet};

const HUB: &str = "hub";

/// A process that keeps the Lease.
struct Process {
    presence: watch::Receiver<Presence>,
    _task: JoinSet<()>,
}

/// Begins a process of the cluster whose own Lease is `home`, after these of the same cluster.
fn begin(leases: &Api<LeaseView>, instance: &str, home: &str, before: &[&str]) -> Process {
    let before: BTreeSet<_> = before.iter().map(|before| format!("copied/{before}")).collect();
    let home = RestoreDetector::new(leases.clone(), home.to_owned());
    let keeper = Keeper {
        detector: RestoreDetector::new(leases.clone(), HUB.to_owned()),
        us: Holder { cluster_uid: "copied".into(), instance: instance.into() },
        hold: Hold::sole(),
        kinship: Kinship::abroad(home, before),
        pace: Pace::lasting(9),
    };
    let (sender, presence) = watch::channel(Presence::Unknown);
    let mut task = JoinSet::new();
    task.spawn(keeper.keep(|| Settled::Yes, sender));
    Process { presence, _task: task }
}

impl Process {
    async fn is(&self, what: &str, is: impl Fn(&Presence) -> bool) {
        eventually(what, || async {
            let now = self.presence.borrow().clone();
            if is(&now) { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
    }

    /// Holds the Lease, and knows that `rival` waits for it.
    async fn stays_with(&self, rival: &str) {
        let want = Presence::Held { rival: Some(format!("copied/{rival}")) };
        self.is("it stays, and knows of the copy", |now| *now == want).await;
    }

    /// Leaves the Lease to `holder`.
    async fn keeps_out_of(&self, holder: &str) {
        let taken = |now: &Presence| matches!(now, Presence::Taken { holder: by, .. } if *by == format!("copied/{holder}"));
        self.is("the copy keeps out", taken).await;
    }
}

#[e2e::test]
fn a8_of_two_copies_of_a_cluster_the_first_stays_and_both_know() {
    shared(async |world| {
        let ns = world.namespace("copies", &["leader"]).await;
        let (leader, leases) = (world.leader(), world.leader().api::<LeaseView>(&ns));
        let own = async |name: &str, holder: &str| {
            let lease =
                json!({"metadata": {"name": name}, "spec": {"holderIdentity": format!("copied/{holder}")}});
            let _: Lease = leader.create(&ns, lease).await;
        };
        let renamed = async |name: &str, holder: &str| {
            let patch = json!({"spec": {"holderIdentity": format!("copied/{holder}")}});
            let _: Lease = leader.patch(&ns, name, &patch).await;
        };
        own("home-of-original", "a").await;
        let original = begin(&leases, "a", "home-of-original", &[]);
        original.is("it holds the Lease", Presence::is_held).await;

        // The copy has the Lease of the original's own cluster, and takes it over as after a restart.
        own("home-of-copy", "b").await;
        let copy = begin(&leases, "b", "home-of-copy", &["a"]);
        copy.keeps_out_of("a").await;
        original.stays_with("b").await;
        always("they do not take it from each other", || async {
            let lease = leases.get(HUB).await.map_err(|error| error.to_string())?;
            (lease.holder() == Some("copied/a")).then_some(()).ok_or_else(|| format!("{lease:?}"))
        })
        .await;

        // A newer process of the original's cluster takes over at once, beside the older one.
        renamed("home-of-original", "a2").await;
        let newer = begin(&leases, "a2", "home-of-original", &["a"]);
        newer.stays_with("b").await;
        original.is("the older one stands by", |now| *now == Presence::Replaced).await;
        copy.keeps_out_of("a2").await;

        // A newer process of the copy does not.
        drop(copy);
        renamed("home-of-copy", "b2").await;
        let copy = begin(&leases, "b2", "home-of-copy", &["b"]);
        copy.keeps_out_of("a2").await;
        newer.stays_with("b2").await;

        // Once nobody of the original's cluster is there, the copy has the Lease.
        drop((original, newer));
        copy.is("the copy has it", Presence::is_held).await;
        drop(copy);
        world.release(&ns).await;
    });
}
