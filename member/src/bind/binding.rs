//! APIServiceBindings of one credential: their CRDs are installed, and what came of it is said at both sides.
//!
//! Watches APIServiceBindings and CRDs here, exports, requests and BoundSchemas in the cluster namespace. Writes the CRDs and the status of
//! the bindings here, the status of exports and of BoundSchemas there. Deletes, for a binding that goes, its objects, APIServiceNamespaces
//! that no other one needs, and its CRDs. Every pass begins with what is there, so it may run twice.

mod bound;
mod drain;
mod drift;
mod install;
mod refused;
mod report;
mod verdict;

use std::{collections::BTreeMap, fmt, time::Duration};

use api::{
    bind::{condition::Answer, holder::Other},
    label::MEMBER,
};
use kit::{
    boot::Env,
    failure::Failure,
    queue::{Outcome, Queue},
    write::{Error, Writer},
};
use kube::ResourceExt;
use tokio::sync::watch;

use self::{drain::Unclear, drift::Checked};
use super::{
    contract::{Contract, IN_TIME},
    credential::Unusable,
    heartbeat::Beating,
    local::{FINALIZER, Local, called, is_over},
    sync::{Bound, Unsynced},
};

/// How long a key rests between two passes: one write brings several events.
const PACE: Duration = Duration::from_millis(50);
/// How soon a CRD is written again that our API server refuses: nothing tells when it would take it.
const AGAIN: Duration = Duration::from_secs(30);

/// What is kept in step, by the name of the API.
pub(crate) type Wanted = BTreeMap<String, Bound>;

/// Bindings, by the APIs of which objects are being kept in step.
pub(crate) type Active = BTreeMap<String, String>;

/// How it stands with the credential.
#[derive(Clone)]
pub(crate) enum Link {
    Connecting,
    Unusable(Unusable),
    /// Our own API server refuses what comes before the provider is asked.
    Refused(String),
    Failing(Failure),
    /// It has ended the contract.
    Evicted,
    /// Another cluster holds the contract.
    InUse(Other),
    /// The provider refuses to note that this cluster holds it.
    Unheld(String),
    /// It answers, but has not told all of the cluster namespace in time.
    Untold(Untold),
    Up(Box<Contract>, Beating),
}

/// What a provider has not told in time.
#[derive(Clone, Debug)]
pub(crate) struct Untold {
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) why: Option<Failure>,
}

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no list of {} came within {} s", self.kinds.join(", "), IN_TIME.as_secs())?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

impl Link {
    /// Reports whether the contract is noted as another cluster's, so that nothing at the provider is this one's. A konnector that is heard
    /// there may run here, with a Secret that somebody renamed.
    pub(crate) fn is_anothers(&self) -> bool {
        matches!(self, Self::InUse(Other::Cluster(_)) | Self::Unusable(Unusable::OfAnotherCluster(_)))
    }

    /// One word for it.
    pub(crate) fn state(&self) -> &'static str {
        match self {
            Self::Connecting => "Connecting",
            Self::Unusable(_) => "Unusable",
            Self::Refused(_)
            | Self::Failing(_)
            | Self::Untold(_)
            | Self::Evicted
            | Self::InUse(_)
            | Self::Unheld(_) => "Failing",
            Self::Up(..) => "Connected",
        }
    }
}

/// The bindings of one credential. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Bindings {
    env: Env,
    local: Local,
    secret: String,
    link: watch::Receiver<Link>,
    writer: Writer,
    queue: Queue<String>,
    bound: watch::Sender<Wanted>,
    /// The bindings by the APIs of which objects are being kept in step, for a moment longer than they are wanted.
    active: watch::Sender<Active>,
    unsynced: Unsynced,
    checked: Checked,
    unclear: Unclear,
}

/// What a pass found out of one binding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) connected: Answer,
    pub(crate) in_sync: Answer,
    /// Our own API server refuses a CRD.
    pub(crate) is_refused: bool,
    /// By the name of the API.
    pub(crate) bound: BTreeMap<String, Bound>,
}

impl Bindings {
    /// Of the credential in this Secret.
    pub(crate) fn new(env: &Env, local: &Local, secret: &str, link: watch::Receiver<Link>) -> Self {
        Self {
            writer: Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone()),
            env: env.clone(),
            local: local.clone(),
            secret: secret.to_owned(),
            link,
            queue: Queue::new(PACE),
            bound: watch::Sender::new(Wanted::new()),
            active: watch::Sender::default(),
            unsynced: Unsynced::new(env.metrics.bind().unsynced()),
            checked: Checked::default(),
            unclear: Unclear::default(),
        }
    }

    pub(crate) fn queue(&self) -> Queue<String> {
        self.queue.clone()
    }

    pub(crate) fn unsynced(&self) -> Unsynced {
        self.unsynced.clone()
    }

    /// The APIs whose objects are to be kept in step.
    pub(crate) fn bound(&self) -> watch::Receiver<Wanted> {
        self.bound.subscribe()
    }

    /// Of these APIs objects are being kept in step.
    pub(crate) fn set_active(&self, active: Active) {
        self.active.send_replace(active);
    }

    /// Asks for a pass of every binding, and of every export, since one without a binding says so.
    pub(crate) fn enqueue(&self) {
        let exports = match &*self.link.borrow() {
            Link::Up(contract, _) => {
                contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect())
            }
            _ => Vec::new(),
        };
        self.queue.enqueue(self.local.bindings_of(&self.secret).into_iter().chain(exports));
    }

    /// One pass of the binding, or of the export, of this name.
    pub(crate) async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let binding = self.local.known.with(|known| known.bindings.get(&name).cloned());
        if binding.as_ref().is_some_and(|binding| called(&binding.spec.kubeconfig_secret_ref) != self.secret)
        {
            // Another Secret may lead to the same cluster namespace: what is said of the export there is that one's.
            self.keep_in_step(&name, BTreeMap::new());
            return Ok(Outcome::Done);
        }
        let link = self.link.borrow().clone();
        let Some(binding) = binding.filter(|binding| !is_over(binding)) else {
            self.keep_in_step(&name, BTreeMap::new());
            if let Link::Up(contract, _) = &link {
                report::on_export(contract, &name, None).await?;
            }
            return Ok(Outcome::Done);
        };
        let Link::Up(contract, beating) = &link else {
            if binding.metadata.deletion_timestamp.is_some() && link.is_anothers() {
                return self.end_alone(&binding, &link).await;
            }
            let verdicts = verdict::unconnected(&link, verdict::was_connected(&binding));
            report::on_binding(&self, &binding, None, verdicts).await?;
            return Ok(Outcome::Done);
        };
        if binding.metadata.deletion_timestamp.is_some() {
            return self.end(&binding, contract).await;
        }
        if !binding.finalizers().iter().any(|held| held == FINALIZER) {
            let held = self.writer.hold(&binding, FINALIZER).await;
            if let Some(why) = held.as_ref().err().and_then(Error::refusal) {
                let verdicts = verdict::unheld(&why);
                report::on_binding(&self, &binding, Some(contract), verdicts).await?;
            }
            // The watch tells.
            return held.map(|_| Outcome::Done);
        }
        let mut found = self.install(&binding, contract).await?;
        verdict::overrun(&mut found, contract.left_out());
        self.keep_in_step(&name, found.bound.clone());
        let health = beating.borrow().clone();
        let verdicts = verdict::connected(&found, &health, &self.unsynced, &binding);
        // What an API server does not take of the one holds up nothing else.
        let told = report::on_binding(&self, &binding, Some(contract), verdicts).await;
        let told = told.and(report::on_export(contract, &name, Some(&found)).await);
        let told = told.and(report::on_schemas(contract, &binding, &self.local).await);
        let outcome = self.let_deleted_go(&binding, contract).await?;
        told.map(
            |()| if outcome == Outcome::Done && found.is_refused { Outcome::Requeue(AGAIN) } else { outcome },
        )
    }

    /// Of this binding exactly these APIs are kept in step.
    fn keep_in_step(&self, name: &str, bound: BTreeMap<String, Bound>) {
        self.bound.send_if_modified(|all| {
            let others = all.iter().filter(|(_, had)| had.binding != name);
            let mut now: Wanted = others.map(|(api, had)| (api.clone(), had.clone())).collect();
            now.extend(bound);
            let is_news = *all != now;
            *all = now;
            is_news
        });
    }
}

#[cfg(test)]
mod tests {
    use api::bind::binding::SecretName;

    use super::*;

    #[test]
    fn a_contract_is_anothers_only_if_that_cluster_is_noted() {
        assert!(Link::InUse(Other::Cluster("them".into())).is_anothers());
        assert!(Link::Unusable(Unusable::OfAnotherCluster("them".into())).is_anothers());
        let secret = SecretName { name: "k".into(), namespace: "kube-bind".into() };
        assert!(!Link::InUse(Other::Konnector(secret)).is_anothers(), "it may have run here");
        assert!(!Link::Evicted.is_anothers() && !Link::Unusable(Unusable::NoKey).is_anothers());
    }
}
