//! What the daemons are told in their environment, which other commands leave as it is: all of binding, and whether there are probes.

use api::bind::{duration::GoDuration, identity::is_prefix, resource::Isolation};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::EnvVar};
use kube::Api;

use crate::{
    Daemons, Error,
    install::Installer,
    objects::{PROBE, SYSTEM, bind::TOLD},
};

/// How the leader keeps the objects of consumers apart.
pub(super) const ISOLATION: &str = "FREEPORT_BIND_ISOLATION";

/// What consumers reach the leader's API server by.
pub(super) const ADDRESS: &str = "FREEPORT_BIND_ADDRESS";
/// How much of the cluster consumers watch.
pub(super) const SCOPE: &str = "FREEPORT_BIND_SCOPE";
const PREFIX: &str = "FREEPORT_BIND_NAMESPACE_PREFIX";
const PRETTY_NAME: &str = "FREEPORT_BIND_PRETTY_NAME";
const LIFETIME: &str = "FREEPORT_BIND_TOKEN_LIFETIME";

/// Whether the leader takes what it is told: it ends at once where it does not.
///
/// # Errors
/// A sentence.
pub(super) fn is_taken(name: &str, value: &str) -> Result<(), String> {
    let one_of = |words: &[&str]| match words.contains(&value) {
        true => Ok(()),
        false => Err(format!("must be one of {}", words.join(", "))),
    };
    let taken = match name {
        ADDRESS => match api::cluster_set::server_uri(value) {
            Some(_) => Ok(()),
            None => Err("must be https://HOST[:PORT][/PATH]; say another one by --address".to_owned()),
        },
        ISOLATION => one_of(&["prefixed", "namespaced", "none"]),
        SCOPE => one_of(&["namespaced", "cluster"]),
        PREFIX => is_prefix(value),
        LIFETIME => GoDuration::of_token(value).map(drop),
        PRETTY_NAME if value.is_empty() => Err("must not be empty".to_owned()),
        _ => Ok(()),
    };
    taken.map_err(|why| format!("{name} of freeport-leader is {value:?}: {why}"))
}

/// What the leader does where a template does not say; of one that runs outside nobody knows.
pub(super) fn usual(told: &[EnvVar]) -> Result<Isolation, String> {
    let said = told.iter().find(|variable| variable.name == ISOLATION);
    let Some(said) = said.and_then(|variable| variable.value.as_deref()) else {
        return Ok(Isolation::default());
    };
    is_taken(ISOLATION, said)?;
    Ok(Isolation::of_word(said).unwrap_or_default())
}

impl Installer<'_> {
    /// What the Deployment of a daemon tells it, so that other commands leave that as it is. Nothing outside.
    pub(crate) async fn told(&self, daemon: &str) -> Result<Vec<EnvVar>, Error> {
        if matches!(self.run.daemons, Daemons::Outside(_)) {
            return Ok(Vec::new());
        }
        let deployments: Api<Deployment> = Api::namespaced(self.cluster.client.clone(), SYSTEM);
        let doing = format!("read Deployment {SYSTEM}/{daemon}");
        let found = self.cluster.request(doing, deployments.get_opt(daemon)).await?;
        Ok(found.map(told).unwrap_or_default())
    }
}

/// What a Deployment tells.
fn told(deployment: Deployment) -> Vec<EnvVar> {
    let pod = deployment.spec.template.spec;
    let container = pod.and_then(|pod| pod.containers.into_iter().next());
    let told = container.and_then(|container| container.env).unwrap_or_default();
    let stays = |variable: &EnvVar| variable.name.starts_with(TOLD) || variable.name == PROBE;
    told.into_iter().filter(stays).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Object, leader, member, tells};

    #[test]
    fn what_a_deployment_tells_stays_when_it_is_deployed_again() {
        let bind = [tells(TOLD, "true"), tells(ADDRESS, "https://leader:6443"), tells(PROBE, "off")];
        let kept = |workload: &[Object]| {
            let is_deployment = |object: &&Object| object.resource.kind == "Deployment";
            let deployment = workload.iter().find(is_deployment).unwrap().body.clone();
            told(serde_json::from_value(deployment).unwrap())
        };
        assert_eq!(kept(&leader::workload("i", 1, &bind)), bind);
        assert_eq!(kept(&member::workload("i", 2, false, &bind)), bind);
        assert_eq!(kept(&leader::workload("i", 1, &[])), []);
    }

    #[test]
    fn what_the_leader_would_not_take_is_not_passed_on() {
        for (name, value) in [
            (ADDRESS, "https://leader:6443"),
            (ISOLATION, "none"),
            (SCOPE, "cluster"),
            (LIFETIME, "720h"),
            (PREFIX, "kube-bind-"),
            (PREFIX, &"n".repeat(33)),
            (PRETTY_NAME, "ACME, Inc."),
        ] {
            assert_eq!(is_taken(name, value), Ok(()), "{name}");
        }
        for (name, value) in [
            (ADDRESS, "http://leader"),
            (ISOLATION, "None"),
            (ISOLATION, "nonsense"),
            (SCOPE, ""),
            (LIFETIME, "5m"),
            (PREFIX, ""),
            (PREFIX, "-x"),
            (PREFIX, "a.b"),
            (PREFIX, &"n".repeat(34)),
            (LIFETIME, "a month"),
            (PRETTY_NAME, ""),
        ] {
            assert!(is_taken(name, value).unwrap_err().contains(name), "{name}={value}");
        }
    }

    #[test]
    fn the_usual_isolation_is_what_the_leader_was_told() {
        let told = |value| usual(&[tells(ISOLATION, value)]);
        assert_eq!((usual(&[]), told("none")), (Ok(Isolation::Prefixed), Ok(Isolation::None)));
        assert!(told("nonsense").is_err());
    }
}
