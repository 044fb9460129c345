//! `freeport version`: the version of this program, and what of Freeport the clusters have. Writes nothing.

use std::collections::BTreeSet;

use api::{label, lease::LeaseView, report::ClusterReport, view::Meta};
use futures::future::join_all;
use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::ResourceExt;
use picture::gap::{Gap, Seen};
use serde::Serialize;

use crate::{
    Error, KubeContext,
    check::installed,
    cluster::Cluster,
    look::{each_once, one, seen, several, uid},
    objects::{Object, SYSTEM, bind, crds, offload},
    part::common_areas,
    printable::printable,
};

/// Options of `freeport version`.
#[derive(Clone, Debug, Default)]
pub struct VersionOptions {
    /// The clusters to look at; none for this program alone.
    pub contexts: Vec<KubeContext>,
}

/// Versions of this program and of clusters: the shape of `-o json`, to which fields may be added.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// `cli.freeport.dev/v1`.
    pub api_version: &'static str,
    /// `Version`.
    pub kind: &'static str,
    /// Version of this program.
    pub freeport: &'static str,
    /// The clusters that answered.
    pub clusters: Vec<ClusterVersions>,
    /// Parts that were not looked at, and why.
    pub not_looked_at: Vec<String>,
}

/// Versions in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersions {
    /// Context that leads to it.
    pub context: String,
    /// Version of its API server.
    pub kubernetes: Option<String>,
    /// The daemons that run for it.
    pub daemons: Vec<Daemon>,
    /// The CustomResourceDefinitions that Freeport uses, as far as they exist; none if they may not be read.
    pub crds: Option<Vec<Crd>>,
    /// Features of the members of the sets that it leads.
    pub members: Vec<Features>,
}

/// A daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Daemon {
    /// `freeport-leader` or `freeport-member`.
    pub name: String,
    /// Its version, as its Lease says.
    pub version: Option<String>,
    /// Image of its Deployment; none if it runs outside of the cluster.
    pub image: Option<String>,
}

/// A CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Crd {
    /// Name.
    pub name: String,
    /// True if Freeport installed it.
    pub freeport: bool,
}

/// Features of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Features {
    /// ID in the set.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Version of its member.
    pub version: Option<String>,
    /// The features that it takes part in.
    pub features: Vec<String>,
}

/// Asks all clusters at once. A cluster that does not answer is a line in [`Versions::not_looked_at`].
///
/// # Errors
/// [`Error::Kubeconfig`] of a context that was named.
pub async fn version(options: &VersionOptions) -> Result<Versions, Error> {
    let (mut clusters, mut not_looked_at) = (Vec::new(), Vec::new());
    for context in &options.contexts {
        match Cluster::open(context).await {
            Ok(cluster) => clusters.push(cluster),
            // Nobody needs a kubeconfig to learn the version of a program.
            Err(error @ Error::Kubeconfig { .. }) if context.name.is_none() => {
                not_looked_at.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let look = async |cluster: &Cluster| {
        let (uid, (versions, lacking)) = tokio::join!(Box::pin(uid(cluster)), Box::pin(of(cluster)));
        (cluster.name.clone(), uid.ok(), versions, lacking)
    };
    let all = join_all(clusters.iter().map(|cluster| Box::pin(look(cluster)))).await;
    let (once, mut notes) = each_once(all, |(context, uid, ..)| (context.clone(), uid.clone()));
    not_looked_at.append(&mut notes);
    let mut known = Vec::new();
    for (_, _, versions, mut lacking) in once {
        known.extend(versions);
        not_looked_at.append(&mut lacking);
    }
    Ok(Versions {
        api_version: crate::schema::API_VERSION,
        kind: "Version",
        freeport: env!("CARGO_PKG_VERSION"),
        clusters: known,
        not_looked_at,
    })
}

async fn of(cluster: &Cluster) -> (Option<ClusterVersions>, Vec<String>) {
    let name = &cluster.name;
    let kubernetes = cluster.request("ask for the version", cluster.client.apiserver_version()).await;
    let kubernetes = match seen(kubernetes.map(Ok)) {
        Err(gap @ Gap::NoAnswer(_)) => return (None, vec![format!("{name}: {gap}")]),
        other => other.map(|version| version.git_version),
    };
    let names = crds();
    let names = names.iter().map(String::as_str).collect();
    let (crds, areas, lease, deployments) = tokio::join!(
        Box::pin(installed(cluster, &names)),
        Box::pin(areas(cluster)),
        Box::pin(one::<LeaseView>(cluster, SYSTEM, label::MEMBER)),
        Box::pin(several::<Deployment>(cluster, SYSTEM, "")),
    );
    let mut lacking = Vec::new();
    let mut note = |part: &str, gap: &Gap| lacking.push(format!("{part} of {name}: {gap}"));
    let kubernetes = kubernetes.inspect_err(|gap| note("version", gap)).ok();
    let crds = crds.inspect_err(|gap| note("CustomResourceDefinitions", gap)).ok();
    let areas = areas.inspect_err(|gap| note("Common Areas", gap)).unwrap_or_default();
    let lease = lease.inspect_err(|gap| note("Lease of freeport-member", gap)).unwrap_or_default();
    let deployments = deployments.inspect_err(|gap| note("Deployments", gap)).unwrap_or_default();
    let leads = areas.iter().find_map(|(leader, _)| leader.as_ref());
    let daemons = [(label::LEADER, leads), (label::MEMBER, lease.as_ref())];
    let versions = ClusterVersions {
        context: name.clone(),
        kubernetes,
        daemons: daemons.into_iter().filter_map(|(name, lease)| daemon(name, lease, &deployments)).collect(),
        crds: crds.map(|crds| crds.iter().map(crd).collect()),
        members: areas.iter().flat_map(|(_, reports)| reports).map(features).collect(),
    };
    (Some(versions), lacking)
}

fn crd(crd: &Meta<CustomResourceDefinition>) -> Crd {
    let installer = crd.labels().get(label::MANAGED_BY);
    Crd { name: crd.name_any(), freeport: installer.is_some_and(|by| by == label::FREEPORT) }
}

/// Names of all CRDs that Freeport uses.
fn crds() -> BTreeSet<String> {
    let all: [fn() -> Vec<Object>; 6] = [
        crds::leader,
        crds::member,
        offload::leader_crds,
        offload::member_crds,
        bind::provider_crds,
        bind::consumer_crds,
    ];
    all.into_iter().flat_map(|crds| crds()).map(|crd| crd.name).collect()
}

/// Of each Common Area the leader's Lease, and the reports of members.
async fn areas(cluster: &Cluster) -> Seen<Vec<(Option<LeaseView>, Vec<ClusterReport>)>> {
    let mut areas = Vec::new();
    for area in seen(common_areas(cluster).await)? {
        let leader = one::<LeaseView>(cluster, &area, label::LEADER).await?;
        areas.push((leader, several::<ClusterReport>(cluster, &area, "").await?));
    }
    Ok(areas)
}

fn daemon(name: &str, lease: Option<&LeaseView>, deployments: &[Deployment]) -> Option<Daemon> {
    let deployment = deployments.iter().find(|deployment| deployment.name_any() == name);
    let pod = deployment.and_then(|deployment| deployment.spec.template.spec.as_ref());
    let image = pod.and_then(|pod| pod.containers.first()?.image.clone());
    let version = lease.and_then(LeaseView::version).map(str::to_owned);
    (deployment.is_some() || lease.is_some()).then(|| Daemon { name: name.into(), version, image })
}

fn features(report: &ClusterReport) -> Features {
    let status = report.status.clone().unwrap_or_default();
    Features {
        cluster_id: report.name_any(),
        version: Some(status.version).filter(|version| !version.is_empty()),
        features: status.features,
    }
}

impl Versions {
    /// For people.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("freeport {}", self.freeport)];
        for cluster in &self.clusters {
            let kubernetes = cluster.kubernetes.as_deref().unwrap_or("of unknown version");
            lines.push(format!("{}: Kubernetes {kubernetes}", cluster.context));
            lines.extend(cluster.daemons.iter().map(|daemon| {
                let version = daemon.version.as_deref().unwrap_or("of unknown version");
                let image = daemon.image.as_ref().map(|image| format!(", image {image}"));
                format!("  {} {version}{}", daemon.name, image.unwrap_or_default())
            }));
            lines.push(format!("  {}", crds_text(cluster.crds.as_deref())));
            lines.extend(cluster.members.iter().map(|member| {
                let version = member.version.as_deref().unwrap_or("of unknown version");
                format!("  member {} {version}: {}", member.cluster_id, member.features.join(", "))
            }));
        }
        lines.iter().map(|line| printable(line) + "\n").collect()
    }
}

fn crds_text(crds: Option<&[Crd]>) -> String {
    let Some(crds) = crds else { return "CRDs are not known".to_owned() };
    let others: Vec<_> = crds.iter().filter(|crd| !crd.freeport).map(|crd| crd.name.as_str()).collect();
    match (crds.len(), others.is_empty()) {
        (0, _) => "no CRDs of Freeport".to_owned(),
        (all, true) => format!("{all} CRDs, all installed by Freeport"),
        (all, false) => format!("{all} CRDs; Freeport did not install {}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_program_tells_its_version_without_a_cluster() {
        let nowhere = |name: Option<&str>| KubeContext {
            file: Some("/nowhere".into()),
            name: name.map(str::to_owned),
            ..KubeContext::default()
        };
        let of = async |contexts| version(&VersionOptions { contexts }).await;
        let alone = of(vec![]).await.unwrap();
        assert_eq!(alone.text(), format!("freeport {}\n", env!("CARGO_PKG_VERSION")));
        let unread = of(vec![nowhere(None)]).await.unwrap();
        assert_eq!((unread.text(), unread.not_looked_at.len()), (alone.text(), 1));
        assert!(matches!(of(vec![nowhere(Some("west"))]).await, Err(Error::Kubeconfig { .. })));
    }

    #[test]
    fn it_says_who_installed_what() {
        let crd = |name: &str, freeport| Crd { name: name.into(), freeport };
        let cluster = ClusterVersions {
            context: "west".into(),
            kubernetes: Some("v1.36.3".into()),
            daemons: vec![Daemon {
                name: "freeport-member".into(),
                version: Some("0.1.0".into()),
                image: Some("freeport:0.1.0".into()),
            }],
            crds: Some(vec![crd("a.x", true), crd("b.x", false)]),
            members: vec![Features {
                cluster_id: "east".into(),
                version: None,
                features: vec!["Services".into(), "Binding".into()],
            }],
        };
        let versions = Versions {
            api_version: crate::schema::API_VERSION,
            kind: "Version",
            freeport: "0.1.0",
            clusters: vec![cluster],
            not_looked_at: vec![],
        };
        let lines = [
            "freeport 0.1.0",
            "west: Kubernetes v1.36.3",
            "  freeport-member 0.1.0, image freeport:0.1.0",
            "  2 CRDs; Freeport did not install b.x",
            "  member east of unknown version: Services, Binding",
        ];
        assert_eq!(versions.text().lines().collect::<Vec<_>>(), lines);
    }
}
