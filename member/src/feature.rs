//! The seam between the daemon and its features. A session, leaving and status hold a table of features and know none by name.
//!
//! Two traits, because a feature exists before, between and after sessions: [`Feature`] is one line in the table, [`Run`] is that
//! feature in one session with a leader. Methods with a body are for features that have such a thing: CRDs that are not only ours,
//! a status in this cluster, doubts about vanished records.

use std::{collections::BTreeSet, sync::Arc};

use api::{antrea::Members, membership::Wire};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    boot::Env,
    crowd::Place,
    failure::Failure,
    index::Shared,
    watch::{Guard, Watches},
    write::Error,
};
use kube::Client;
use presence::leases::{Leases, News};
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{home::Home, identity::Identity};

/// What a feature works with in this cluster, whether there is a session or not.
#[derive(Clone)]
pub(crate) struct Local {
    /// This daemon and its cluster.
    pub(crate) env: Env,
    /// This cluster's API server.
    pub(crate) home: Home,
    /// Who we are in the Common Area.
    pub(crate) us: Identity,
    /// How the leader speaks.
    pub(crate) wire: Wire,
}

/// What a feature works with in one session.
#[derive(Clone)]
pub(crate) struct Access {
    /// This daemon and its cluster.
    pub(crate) env: Env,
    /// This cluster's API server.
    pub(crate) home: Home,
    /// Who we are in the Common Area.
    pub(crate) us: Identity,
    /// Reads and writes the Common Area.
    pub(crate) leader: Client,
    /// How the leader speaks.
    pub(crate) wire: Wire,
    /// Members that run Antrea's controllers.
    pub(crate) antrea: Members,
    /// The Leases of the Common Area.
    pub(crate) leases: Shared<Leases>,
    /// Notices that the leader's API server was restored; none where the wire has its own way.
    pub(crate) guard: Option<Arc<dyn Guard>>,
    /// To be notified when there is something new to report on the ClusterSet.
    pub(crate) changed: Arc<Notify>,
}

impl Access {
    /// What of it does not need the leader.
    pub(crate) fn local(&self) -> Local {
        Local { env: self.env.clone(), home: self.home.clone(), us: self.us.clone(), wire: self.wire }
    }
}

/// What a shortfall is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// What others export is not all imported here.
    Imports,
    /// What is exported is not all declared by a ServiceExport.
    Exports,
    /// Nothing is lacking, but somebody may want to know something of the imports here.
    Note,
}

/// What is not as a feature wants it to be, though nothing failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shortfall {
    pub(crate) about: About,
    /// Why, in CamelCase.
    pub(crate) reason: &'static str,
    /// A sentence, with how many, and the names of the first.
    pub(crate) message: String,
    /// Whether somebody has to act.
    pub(crate) is_problem: bool,
}

/// All features of the member: the table.
pub(crate) type Features = Arc<[Box<dyn Feature>]>;

/// A feature of the member.
pub(crate) trait Feature: Send + Sync {
    /// What the ClusterSet calls it, for example `Services`.
    fn name(&self) -> &'static str;

    /// Names of the CRDs of this cluster that it needs and that somebody else may have installed.
    fn crds(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether something that it wrote or reads, in this cluster or in the Common Area, shows that the leader is Freeport's. Asked
    /// before a session, where Leases are refused: then the leader may be Antrea's. An error means that it is not known.
    fn knows_freeport(&self, _access: Access) -> BoxFuture<'_, Result<bool, Failure>> {
        async { Ok(false) }.boxed()
    }

    /// The feature in one session. Nothing runs before [`Run::watch`].
    fn begin(&self, access: Access) -> Box<dyn Run>;

    /// Keeps up what this cluster alone decides about what the feature imported, until `stop`: runs while there can be no session
    /// (Secret or ClusterSet are broken), though it is noted who we are.
    fn run_alone(&self, _local: Local, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move { stop.cancelled().await }.boxed()
    }

    /// Takes back all that we wrote to the Common Area, because we leave.
    fn withdraw(&self, access: Access) -> BoxFuture<'_, Result<(), Failure>>;

    /// Removes from this cluster all that the feature imported, because we leave. `us` is our ID, if it is noted.
    fn remove_imports<'a>(&'a self, env: &'a Env, us: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>>;

    /// Takes back what the feature wrote in the status of objects of this cluster, because we have left. The exports stay.
    fn clear_status<'a>(&'a self, _env: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

/// A feature in one session.
pub(crate) trait Run: Send + Sync {
    /// Begins its watches, of this cluster and of the Common Area.
    fn watch(&self, tasks: &mut JoinSet<()>);

    /// Its watches of this cluster.
    fn local(&self) -> &Watches;

    /// Its watches of the Common Area.
    fn leader(&self) -> &Watches;

    /// Waits until one of its watches has found that the leader's API server was restored.
    fn restored(&self) -> BoxFuture<'_, ()> {
        self.leader().restored().boxed()
    }

    /// What it lists of the Common Area waits for its turn from now on: we have this place among those that may list when we do.
    fn take_turns(&self, place: Option<Place>) {
        self.leader().take_turns(place.map(|place| place.in_round(0)));
    }

    /// Runs its controllers until `stop`. What it writes to the Common Area or imports waits until its own watches have listed, and
    /// for `begin`: our ID is ours, and the Leases and announces are listed, with the members that run Antrea's controllers as they
    /// are in [`Access`]. Until then it does what it does in [`Feature::run_alone`].
    fn run(&self, begin: BoxFuture<'static, ()>, stop: CancellationToken) -> BoxFuture<'_, ()>;

    /// Leases were renewed or are gone.
    fn hear(&self, _news: &News) {}

    /// The keys about which something is left to write to the Common Area: the member vouches for all else. None has a space.
    fn unwritten(&self) -> Vec<String>;

    /// Namespaces that this cluster lacks, and that others export something of for every cluster; none while that is not known.
    fn lacks(&self) -> Option<BTreeSet<String>> {
        Some(BTreeSet::new())
    }

    /// The leader answers again: tries at once what failed.
    fn retry_failed(&self);

    /// What the ClusterSet says of what is to go, before it runs and whenever that changes: what stays here against the leader's word.
    fn let_go(&self, _said: Option<&str>) {}

    /// What the leader's API server drops of its writes, if it drops something.
    fn pruned(&self) -> Option<String> {
        None
    }

    /// What is not as it should be, though nothing failed; none while that is not known.
    fn shortfalls(&self) -> Option<Vec<Shortfall>> {
        Some(vec![])
    }

    /// One of its [`crds`](Feature::crds) changed: what is told differently now is read again, and what an older one did not keep is
    /// written again.
    fn local_again(&self) {
        self.local().list_again();
    }

    /// The same of a CRD of its records.
    fn records_again(&self) {
        self.leader().list_again();
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
pub(crate) mod proof;
