//! What `--offload` of `freeport init` and `freeport join` adds. Whoever runs these again without it keeps it, brought up to date.

use std::{collections::BTreeMap, path::PathBuf};

use api::label;
use k8s_openapi::{
    api::rbac::v1::ClusterRole,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt, api::ListParams};

use super::Offloading;
use crate::{
    Daemons, Error, Part,
    cluster::Cluster,
    install::Installer,
    objects::{
        Object,
        offload::{self, webhook},
    },
    run::Run,
};

/// The groups of Liqo's kinds, some of which are ours too.
const LIQO: &str = "liqo.io";

/// Refuses a cluster where Liqo is installed: its controllers and ours would act on the same objects.
pub(crate) async fn is_without_liqo(cluster: &Cluster) -> Result<(), Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let found =
        cluster.request("list CustomResourceDefinitions", crds.list_metadata(&ListParams::default())).await?;
    let is_ours = |labels: &BTreeMap<String, String>| {
        labels.get(label::MANAGED_BY).is_some_and(|by| by == label::FREEPORT)
    };
    let theirs = found.iter().find(|crd| is_of_liqo(&crd.name_any()) && !is_ours(crd.labels()));
    match theirs.map(ResourceExt::name_any) {
        Some(crd) => Err(cluster.refuse(format!(
            "offloading cannot be set up: Liqo is installed here, or its CustomResourceDefinitions are ({crd}), and its controllers \
             and Freeport's would act on the same NamespaceOffloadings; uninstall it first"
        ))),
        None => Ok(()),
    }
}

fn is_of_liqo(crd: &str) -> bool {
    crd.split_once('.').is_some_and(|(_, group)| group == LIQO || group.ends_with(&format!(".{LIQO}")))
}

/// Warns if the leader has no CRDs of the records of offloading, as far as it may be asked.
pub(crate) async fn leader_lacks_records(leader: &Cluster, run: &Run) {
    for crd in offload::leader_crds() {
        if matches!(leader.read(&crd).await, Ok(None)) {
            run.warn(&format!(
                "{}: {crd} does not exist, so nothing is offloaded over this leader: run `freeport init --offload` there",
                leader.name
            ));
            return;
        }
    }
}

/// Whether offloading is set up in a member's cluster.
pub(crate) async fn offloads(cluster: &Cluster) -> Result<bool, Error> {
    let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
    let there = roles.get_metadata_opt(offload::ROLE);
    let there = cluster.request(format!("read ClusterRole {}", offload::ROLE), there).await?;
    Ok(there.is_some())
}

impl Installer<'_> {
    /// What is asked for, else what the leader's cluster has, if it has it.
    pub(crate) async fn has_offload_records(&self, asked: Option<&Offloading>) -> Result<bool, Error> {
        if asked.is_some() {
            return Ok(true);
        }
        for crd in offload::leader_crds() {
            if self.cluster.read(&crd).await?.is_some_and(|there| there.is_ours()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is asked for, else what the member's cluster has, if it has it.
    pub(crate) async fn offloading(&self, asked: Option<&Offloading>) -> Result<Option<Offloading>, Error> {
        if asked.is_none() && !offloads(self.cluster).await? {
            return Ok(None);
        }
        let given = asked.and_then(|asked| asked.webhook_url.clone());
        let webhook_url = match given {
            Some(url) => Some(url),
            None => self.webhook_url().await?,
        };
        Ok(Some(Offloading { webhook_url }))
    }

    /// Where the API server asks a webhook outside of the cluster.
    async fn webhook_url(&self) -> Result<Option<String>, Error> {
        let there = self.cluster.read(&webhook::configuration(None)).await?;
        let url = there.as_ref().and_then(|there| there.body.pointer("/webhooks/0/clientConfig/url"));
        Ok(url.and_then(|url| url.as_str()).map(str::to_owned))
    }

    /// CRDs and rights, and who asks the webhook when. Returns the webhook's kubeconfig, if it runs outside.
    pub(crate) async fn install_offloading(
        &mut self,
        offloading: &Offloading,
        image: Option<&str>,
    ) -> Result<Option<PathBuf>, Error> {
        self.install_crds(&offload::member_crds()).await?;
        self.install(Part::Member, &offload::member()).await?;
        self.install(Part::Member, &webhook(offloading, image)).await?;
        if image.is_none()
            && offloading.webhook_url.is_none()
            && self.run.does(Part::Member)
            && !self.run.dry_run
        {
            self.say(&format!(
                "no API server asks freeport-webhook yet: run this again with --webhook-url https://HOST:PORT{} and --offload",
                webhook::PATH
            ));
        }
        self.kubeconfig(Part::Member, webhook::NAME).await
    }
}

/// The webhook inside, or how it is asked outside, once that is known.
fn webhook(offloading: &Offloading, image: Option<&str>) -> Vec<Object> {
    match (image, &offloading.webhook_url) {
        (Some(image), _) => [webhook::workload(image), vec![webhook::configuration(None)]].concat(),
        (None, Some(url)) => vec![webhook::configuration(Some(url))],
        (None, None) => Vec::new(),
    }
}

/// The address is one at which API servers ask webhooks.
pub(crate) fn check(offloading: Option<&Offloading>, run: &Run) -> Result<(), Error> {
    let Some(url) = offloading.and_then(|offloading| offloading.webhook_url.as_deref()) else {
        return Ok(());
    };
    if matches!(run.daemons, Daemons::Inside { .. }) {
        return Err(Error::Argument("--webhook-url is for daemons that run outside: add --external".into()));
    }
    let uri = api::cluster_set::server_uri(url);
    match uri.filter(|uri| uri.path() == webhook::PATH) {
        Some(_) => Ok(()),
        None => Err(Error::Argument(format!(
            "--webhook-url {url:?} must be https://HOST[:PORT]{}: what the API server asks about Pods",
            webhook::PATH
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn kinds_of_liqo_are_known_by_their_group() {
        for crd in ["virtualnodes.offloading.liqo.io", "tenants.authentication.liqo.io", "x.liqo.io"] {
            assert!(is_of_liqo(crd), "{crd}");
        }
        for crd in ["offloadpeers.multicluster.freeport.dev", "x.notliqo.io", "liqo.io"] {
            assert!(!is_of_liqo(crd), "{crd}");
        }
    }

    #[test]
    fn a_webhook_outside_has_a_url_and_one_inside_has_none() {
        let run = |daemons| Run {
            daemons,
            only: Vec::new(),
            wait: false,
            timeout: Duration::ZERO,
            dry_run: false,
            aside: |_| {},
        };
        let (inside, outside) =
            (run(Daemons::Inside { image: None, replicas: None }), run(Daemons::Outside("d".into())));
        let at = |url: &str| Offloading { webhook_url: Some(url.to_owned()) };
        let good = at("https://127.0.0.1:8443/mutate/pod");
        assert!(check(None, &inside).is_ok() && check(Some(&Offloading::default()), &inside).is_ok());
        assert!(check(Some(&good), &outside).is_ok() && check(Some(&good), &inside).is_err());
        for bad in ["https://127.0.0.1:8443", "http://127.0.0.1/mutate/pod", "127.0.0.1"] {
            assert!(check(Some(&at(bad)), &outside).is_err(), "{bad}");
        }
        assert_eq!(webhook(&good, None).len(), 1);
        assert!(webhook(&good, Some("a:1")).len() > 1 && webhook(&Offloading::default(), None).is_empty());
    }
}
