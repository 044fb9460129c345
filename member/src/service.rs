//! Services: exporting those of this cluster, importing those of the set.
//!
//! | module | holds |
//! |---|---|
//! | [`index`] | what is known of each Service name; depends on nothing below |
//! | [`offer`] | what this cluster exports: pure |
//! | [`antrea`] | members and leaders that run Antrea's controllers |
//! | [`keys`] | exported labels and annotations that Services of imports do not get: pure |
//! | [`addresses`] | addresses of imports that have ended, for when they come back |
//! | [`copies`] | copies that somebody made of what an import consists of: pure |
//! | [`irregular`] | Services about which somebody has to decide |
//! | [`knowledge`] | the index, and the queues of the controllers |
//! | [`export`], [`import`], [`status`], [`reading`] | the controllers |
//! | [`report`] | what this cluster reports of its exports and imports, and what others report |
//! | [`unanswered`] | that no endpoint can answer: when it is said |
//! | [`reach`] | whether endpoints of other clusters answer from here |
//! | [`watches`], [`families`], [`machines`], [`allowance`] | how it is learned, and how much of it |
//! | [`here`] | what needs no leader |
//! | [`run`] | one session with a leader: its watches and controllers |
//! | [`shortfalls`] | what is not as it should be though nothing failed, in words |
//! | [`leave`], [`signs`] | before and after sessions |

mod addresses;
mod allowance;
mod antrea;
mod copies;
mod export;
mod families;
mod here;
mod import;
mod index;
mod irregular;
mod knowledge;
mod leave;
mod machines;
mod offer;
mod reach;
mod reading;
mod report;
mod run;
mod shortfalls;
mod signs;
mod status;
mod unanswered;
mod watches;

use std::{sync::Arc, time::Duration};

use api::unwritten::SERVICES;
use futures::{FutureExt, future::BoxFuture};
use kit::{boot::Env, failure::Failure, index::Shared, write::Error};
use tokio_util::sync::CancellationToken;

use self::{
    addresses::noting::Kept,
    here::Here,
    reach::Reach,
    report::{Features, Pacing},
    run::ServicesRun,
};
pub(crate) use self::{index::cluster::EndpointIp, reach::Probe};
use crate::feature::{Access, Feature, Local, Run};

/// What the administrator chose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choices {
    /// What of a Service is exported.
    pub(crate) endpoint_ip: EndpointIp,
    /// Whether an import has core Endpoints beside its slices.
    pub(crate) endpoints_objects: bool,
    /// How many imports are made here at the most.
    pub(crate) max_imports: usize,
    /// Whether it is tried to connect to endpoints of other clusters.
    pub(crate) probe: Probe,
    /// How long the address of an import that has ended is kept for it.
    pub(crate) keep_address: Duration,
}

/// Services, as a feature of the member.
pub(crate) struct Services {
    choices: Choices,
    /// What is known of the ways to other clusters, whatever becomes of sessions.
    reach: Shared<Reach>,
    /// Addresses of imports that have ended, likewise.
    addresses: Kept,
    /// How often this cluster has reported, likewise.
    pacing: Pacing,
}

impl Services {
    /// With these choices, in a member that has these features.
    pub(crate) fn new(choices: Choices, features: Features) -> Self {
        let addresses = Kept::new(choices.keep_address);
        Self { choices, reach: Shared::default(), addresses, pacing: Pacing::new(features) }
    }
}

impl Feature for Services {
    fn name(&self) -> &'static str {
        SERVICES
    }

    fn crds(&self) -> &'static [&'static str] {
        &["serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io"]
    }

    fn knows_freeport(&self, access: Access) -> BoxFuture<'_, Result<bool, Failure>> {
        async move { signs::of_freeport(&access).await }.boxed()
    }

    fn begin(&self, access: Access) -> Box<dyn Run> {
        let kept = (self.reach.clone(), self.addresses.clone(), self.pacing.clone());
        Box::new(ServicesRun::new(access, self.choices, kept))
    }

    fn run_alone(&self, local: Local, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move {
            let here = Here::new(local, self.choices);
            let probing = here.probing(self.reach.clone(), Arc::default());
            here.run_alone(&probing, &stop).await;
        }
        .boxed()
    }

    fn withdraw(&self, access: Access) -> BoxFuture<'_, Result<(), Failure>> {
        self.pacing.forget();
        async move { leave::withdraw(&access).await.and(report::withdraw(&access).await) }.boxed()
    }

    fn remove_imports<'a>(&'a self, env: &'a Env, _us: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>> {
        leave::remove_imports(env).boxed()
    }

    fn clear_status<'a>(&'a self, env: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        leave::clear_status(env).boxed()
    }
}

#[cfg(test)]
mod attempts;
