//! Which contracts there are: one for each Secret with a credential that an APIServiceBinding uses, or that is marked.
//!
//! Watches APIServiceBindings, the Secrets of Namespace `kube-bind`, CRDs and Namespaces of our cluster. Starts a [`provider`] for each
//! credential, ends it when nobody uses the credential any more, and begins anew when it is another one.

use std::collections::BTreeMap;

use api::bind::label::PROVIDER_KUBECONFIG;
use k8s_openapi::api::core::v1::Secret;
use kit::{boot::Env, client::kubeconfig::Target, drive::resume, watch::Watches};
use kube::ResourceExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    absence::Absence,
    credential::{Credential, Unusable},
    local::{KEY, Local, called},
    provider,
};

/// A contract that runs.
struct Running {
    credential: Credential,
    stop: CancellationToken,
}

/// Why all contracts have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// They were to.
    Stopped,
    /// Our cluster was restored from a backup: what is known of it is worth nothing.
    Restored,
}

/// Runs all contracts until `stop`, or until our cluster turns out to be restored from a backup.
pub(crate) async fn run(env: &Env, absence: Absence, stop: &CancellationToken) -> Ended {
    let (local, mut tasks) = (Local::new(), JoinSet::new());
    let watches = Watches::guarded(absence.guard());
    local.watch(env, &watches, &mut tasks);
    let mut changes = local.changes();
    let (mut running, mut ending) = (BTreeMap::<String, Running>::new(), JoinSet::new());
    tokio::select! {
        () = watches.listed() => {}
        () = stop.cancelled() => return Ended::Stopped,
        Some(Err(error)) = tasks.join_next() => resume(error),
    }
    let ended = loop {
        changes.mark_unchanged();
        let wanted = credentials(&local);
        running.retain(|name, contract| {
            let stays = wanted.get(name) == Some(&contract.credential);
            if !stays {
                contract.stop.cancel();
            }
            stays
        });
        for (name, credential) in wanted {
            if running.contains_key(&name) {
                continue;
            }
            // A kubeconfig that cannot be used is said on the bindings that name it.
            let target = credential.clone().and_then(|kubeconfig| Ok(Target::read(&kubeconfig)?));
            let all = stop.clone();
            let stop = all.child_token();
            let span = tracing::info_span!("contract", secret = name);
            let contract = provider::run(
                env.clone(),
                local.clone(),
                (name.clone(), target),
                absence.clone(),
                (stop.clone(), all),
            );
            ending.spawn(contract.instrument(span));
            running.insert(name, Running { credential, stop });
        }
        tokio::select! {
            () = stop.cancelled() => break Ended::Stopped,
            () = watches.restored() => break Ended::Restored,
            Ok(()) = changes.changed() => {}
            Some(Err(error)) = ending.join_next() => resume(error),
            Some(Err(error)) = tasks.join_next() => resume(error),
        }
    };
    running.values().for_each(|contract| contract.stop.cancel());
    while let Some(contract) = ending.join_next().await {
        contract.unwrap_or_else(resume);
    }
    tasks.shutdown().await;
    ended
}

/// The credentials that are used, by the names of their Secrets.
fn credentials(local: &Local) -> BTreeMap<String, Credential> {
    local.known.with(|known| {
        let is_marked =
            |secret: &&Secret| secret.labels().get(PROVIDER_KUBECONFIG).is_some_and(|value| value == "true");
        let marked = known.secrets.iter().filter(is_marked).map(ResourceExt::name_any);
        let of_bindings = known.bindings.iter().map(|binding| &binding.spec.kubeconfig_secret_ref);
        let named = of_bindings.map(called);
        let kubeconfig = |name: &String| match known.secrets.get(name) {
            None if name.contains('/') => Err(Unusable::Elsewhere(name.clone())),
            None => Err(Unusable::NotFound(name.clone())),
            Some(secret) => {
                let data = secret.data.as_ref().and_then(|data| data.get(KEY));
                data.map(|kubeconfig| kubeconfig.0.clone()).ok_or(Unusable::NoKey)
            }
        };
        marked.chain(named).map(|name| (name.clone(), kubeconfig(&name))).collect()
    })
}
