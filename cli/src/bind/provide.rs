//! `freeport bind provide`: makes a cluster a provider.

use std::{collections::BTreeMap, path::PathBuf};

use api::{
    bind::resource::{InformerScope, Isolation},
    label,
};
use k8s_openapi::api::core::v1::EnvVar;

use super::told::{ADDRESS, ISOLATION, SCOPE, is_taken};
use crate::{
    Error, KubeContext, Part, Run,
    cluster::Cluster,
    eraser::Say,
    install::Installer,
    kubeconfig,
    objects::{
        bind::{self, TOLD},
        crds, leader, tells,
    },
    outside, warning,
};

/// Who provides, and how consumers reach it.
#[derive(Clone, Debug)]
pub struct ProvideOptions {
    /// The cluster that is to be a provider.
    pub cluster: KubeContext,
    /// URL of its API server as consumers reach it; none: as it is, else that of the kubeconfig.
    pub address: Option<String>,
    /// How the objects of consumers are kept apart; none: as it is, else Prefixed.
    pub isolation: Option<Isolation>,
    /// How much of the cluster consumers watch; none: as it is, else their own Namespaces.
    pub scope: Option<InformerScope>,
    /// How it is done.
    pub run: Run,
}

/// How to run a leader outside that provides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provided {
    /// Its kubeconfig; none if it runs inside.
    pub kubeconfig: Option<PathBuf>,
    /// What it is to be told in its environment.
    pub told: BTreeMap<String, String>,
}

/// Installs CRDs, rights and a leader that serves consumers. Safe to run again: it changes only what differs.
///
/// # Errors
/// Those of [`Error`]. Arguments and the state of the cluster are checked before anything is changed.
pub async fn provide(options: &ProvideOptions, say: Say<'_>) -> Result<Provided, Error> {
    let run = &options.run;
    if let Some(address) = &options.address {
        is_taken(ADDRESS, address).map_err(Error::Argument)?;
    }
    let cluster = Cluster::connect(&options.cluster).await?;
    kubeconfig::folder_is_of(&cluster, run)?;
    outside::is_no_leader(&cluster, run).await?;
    let mut here = Installer::new(&cluster, run, say);
    let told = told(here.told(label::LEADER).await?, options, &cluster.server);
    for variable in &told {
        let value = variable.value.as_deref();
        value.map_or(Ok(()), |value| is_taken(&variable.name, value)).map_err(|why| cluster.refuse(why))?;
    }
    let address = told.iter().find(|variable| variable.name == ADDRESS);
    if let Some(address) = address.and_then(|variable| variable.value.as_deref()) {
        warning::consumers_reach_themselves(&cluster, address, run);
    }
    here.install_crds(&crds::leader()).await?;
    here.install_crds(&bind::provider_crds()).await?;
    here.install(Part::Leader, &leader::objects()).await?;
    here.install(Part::Leader, &bind::provider()).await?;
    if let Some(image) = here.image(label::LEADER).await? {
        let replicas = here.replicas(label::LEADER).await?;
        let workload = leader::workload(&image, replicas, &told);
        here.run_daemon(Part::Leader, label::LEADER, &workload).await?;
    }
    let kubeconfig = here.kubeconfig(Part::Leader, label::LEADER).await?;
    here.sum_up();
    if here.is_to_wait(Part::Leader) {
        here.provider_is_ready().await?;
    }
    let told = told.into_iter().filter_map(|variable| Some((variable.name, variable.value?)));
    Ok(Provided { kubeconfig, told: told.collect() })
}

/// What the leader is told: what was asked for, over what it was told before.
fn told(had: Vec<EnvVar>, options: &ProvideOptions, server: &str) -> Vec<EnvVar> {
    let mut all: BTreeMap<_, _> = had.into_iter().map(|variable| (variable.name.clone(), variable)).collect();
    let scope = options.scope.map(|scope| match scope {
        InformerScope::Cluster => "cluster".to_owned(),
        InformerScope::Namespaced => "namespaced".to_owned(),
    });
    let asked = [
        (TOLD, Some(label::TRUE.to_owned())),
        (ADDRESS, options.address.clone()),
        (ISOLATION, options.isolation.map(|isolation| isolation.word().to_lowercase())),
        (SCOPE, scope),
    ];
    for (name, value) in asked.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        all.insert(name.to_owned(), tells(name, &value));
    }
    all.entry(ADDRESS.to_owned()).or_insert_with(|| tells(ADDRESS, server));
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Daemons;

    #[test]
    fn what_was_told_before_stays_unless_it_is_asked_for() {
        let run = Run {
            daemons: Daemons::Inside { image: None, replicas: None },
            only: Vec::new(),
            wait: false,
            timeout: Duration::ZERO,
            dry_run: false,
            aside: |_| {},
        };
        let cluster = KubeContext::default();
        let mut options = ProvideOptions { cluster, address: None, isolation: None, scope: None, run };
        let said = |told: &[EnvVar]| -> Vec<_> {
            told.iter().map(|v| format!("{}={}", v.name, v.value.as_deref().unwrap_or_default())).collect()
        };
        let first = told(Vec::new(), &options, "https://a");
        assert_eq!(said(&first), ["FREEPORT_BIND=true", "FREEPORT_BIND_ADDRESS=https://a"]);
        options.isolation = Some(Isolation::None);
        options.scope = Some(InformerScope::Cluster);
        let other =
            told([first, vec![tells("FREEPORT_BIND_PRETTY_NAME", "X")]].concat(), &options, "https://b");
        assert_eq!(
            said(&other),
            [
                "FREEPORT_BIND=true",
                "FREEPORT_BIND_ADDRESS=https://a",
                "FREEPORT_BIND_ISOLATION=none",
                "FREEPORT_BIND_PRETTY_NAME=X",
                "FREEPORT_BIND_SCOPE=cluster"
            ]
        );
    }
}
