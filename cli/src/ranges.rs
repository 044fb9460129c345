//! `--pod-cidrs` and `--service-cidrs` of `freeport init` and `freeport join`: which addresses the endpoints of the member may have. It is
//! noted on the member's ServiceAccount at the leader, which the member cannot write. Whoever runs these again without them keeps what was
//! said.

use std::str::FromStr;

use api::{
    label,
    ranges::Ranges,
    view::{Lenient, Meta},
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, ServiceAccount},
    networking::v1::ServiceCIDR,
};
use kube::{Api, ResourceExt};
use serde::Deserialize;

use crate::{
    Error,
    cluster::{Cluster, known},
    objects::{access, area},
    run::{Part, Run},
    view::Note,
};

/// Where kubeadm keeps what it was told.
const SYSTEM: &str = "kube-system";
const KUBEADM: &str = "kubeadm-config";
const TOLD: &str = "ClusterConfiguration";

/// Ranges of addresses, as a flag says them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cidrs {
    /// `any`: no bound.
    Any,
    /// `auto`: as the cluster says.
    Auto,
    /// These.
    These(Ranges),
}

impl FromStr for Cidrs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "any" => Ok(Self::Any),
            "auto" => Ok(Self::Auto),
            _ => {
                let ranges: Ranges = text.parse()?;
                let these = (!ranges.is_empty()).then_some(Self::These(ranges));
                these.ok_or_else(|| "no range is given".to_owned())
            }
        }
    }
}

/// Which addresses the endpoints of a member may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRanges {
    /// Those of its Pods.
    pub pods: Cidrs,
    /// Those of its Services, for a member that exports ClusterIPs.
    pub services: Option<Cidrs>,
}

/// What was asked for makes sense, and is done.
pub(crate) fn check(asked: Option<&AddressRanges>, run: &Run) -> Result<(), Error> {
    let Some(AddressRanges { pods, services }) = asked else { return Ok(()) };
    let wrong = |message: &str| Err(Error::Argument(message.to_owned()));
    if !run.does(Part::Leader) {
        return wrong("--pod-cidrs are noted at the leader: do its part, too (--only leader)");
    }
    match (pods, services) {
        (Cidrs::Any, Some(_)) => wrong("--pod-cidrs any is no bound: leave --service-cidrs out"),
        (_, Some(Cidrs::Any)) => wrong("--service-cidrs any would be no bound: say --pod-cidrs any for that"),
        _ => Ok(()),
    }
}

/// The ranges that were asked for, empty if any address is right; none if nothing was asked for.
pub(crate) async fn of(cluster: &Cluster, asked: Option<&AddressRanges>) -> Result<Option<Ranges>, Error> {
    let Some(AddressRanges { pods, services }) = asked else { return Ok(None) };
    let pods = match pods {
        Cidrs::Any => return Ok(Some(Ranges::default())),
        Cidrs::These(ranges) => ranges.clone(),
        Cidrs::Auto => pods_of(cluster).await?,
    };
    let services = match services {
        None | Some(Cidrs::Any) => Ranges::default(),
        Some(Cidrs::These(ranges)) => ranges.clone(),
        Some(Cidrs::Auto) => services_of(cluster).await?,
    };
    Ok(Some(Ranges::of(pods.iter().chain(services.iter()).copied())))
}

/// Who said which ranges a member has.
#[derive(Debug, PartialEq)]
pub(crate) enum Noted {
    /// The leader: the ServiceAccount of the member there has this note, or none.
    Here(Option<String>),
    /// The leader that the member had before, as the member noted. Under this one it has no ServiceAccount yet.
    Before(String),
}

impl Noted {
    /// What the ServiceAccount of member `id` at the leader notes, be it nothing that limits. If there is none: what `member` has noted.
    pub(crate) async fn of(leader: &Cluster, member: &Cluster, set: &str, id: &str) -> Result<Self, Error> {
        let (area, account) = (area::name(set), access::account(id));
        let accounts = Api::<Meta<ServiceAccount>>::namespaced(leader.client.clone(), &area);
        let doing = format!("read ServiceAccount {area}/{account}");
        let account = leader.request(doing, known(accounts.get(&account))).await?;
        let note = if account.is_none() { Note::of(member).await? } else { None };
        Ok(Self::by(account.as_ref(), note, (set, id)))
    }

    fn by(account: Option<&Meta<ServiceAccount>>, note: Option<Note>, (set, id): (&str, &str)) -> Self {
        if let Some(account) = account {
            return Self::Here(account.annotations().get(label::ADDRESS_RANGES).cloned());
        }
        let is_of_it =
            |note: &Note| (note.cluster_set.as_deref(), note.cluster_id.as_deref()) == (Some(set), Some(id));
        note.filter(is_of_it).and_then(|note| note.ranges).map_or(Self::Here(None), Self::Before)
    }

    /// The note.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Here(ranges) => ranges,
            Self::Before(ranges) => Some(ranges),
        }
    }
}

async fn pods_of(cluster: &Cluster) -> Result<Ranges, Error> {
    let told = kubeadm(cluster).await?.pod_subnet;
    found(&told).ok_or_else(|| unknown(cluster, "Pods", "--pod-cidrs"))
}

async fn services_of(cluster: &Cluster) -> Result<Ranges, Error> {
    let api = Api::<ServiceCIDR>::all(cluster.client.clone());
    let ranges = cluster.all(&api, "").await?.into_iter().filter_map(|range| range.spec);
    let cidrs: Vec<_> = ranges.flat_map(|spec| spec.cidrs.into_iter().flatten()).collect();
    if let Some(ranges) = found(&cidrs.join(",")) {
        return Ok(ranges);
    }
    let told = kubeadm(cluster).await?.service_subnet;
    found(&told).ok_or_else(|| unknown(cluster, "Services", "--service-cidrs"))
}

fn found(text: &str) -> Option<Ranges> {
    text.parse().ok().filter(|ranges: &Ranges| !ranges.is_empty())
}

fn unknown(cluster: &Cluster, of: &str, flag: &str) -> Error {
    cluster.refuse(format!(
        "it cannot be found out which addresses {of} have (ConfigMap {SYSTEM}/{KUBEADM} does not say it): name them with \
         {flag} 10.1.0.0/16,..."
    ))
}

/// What kubeadm was told of the cluster's network.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Networking {
    pod_subnet: String,
    service_subnet: String,
}

async fn kubeadm(cluster: &Cluster) -> Result<Networking, Error> {
    let maps = Api::<ConfigMap>::namespaced(cluster.client.clone(), SYSTEM);
    let found =
        cluster.request(format!("read ConfigMap {SYSTEM}/{KUBEADM}"), known(maps.get(KUBEADM))).await?;
    let told = found.and_then(|map| map.data?.remove(TOLD));
    Ok(told.map(|told| networking(&told)).unwrap_or_default())
}

fn networking(told: &str) -> Networking {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Told {
        networking: Lenient<Networking>,
    }
    let told = serde_yaml::from_str::<serde_json::Value>(told).unwrap_or_default();
    let told = serde_json::from_value::<Told>(told).unwrap_or_default();
    told.networking.0.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn flags_are_lists_or_words() {
        assert_eq!("any".parse(), Ok(Cidrs::Any));
        assert_eq!("auto".parse(), Ok(Cidrs::Auto));
        let these = "10.1.0.0/16,fd00:1::/64";
        assert_eq!(these.parse(), Ok(Cidrs::These(these.parse().unwrap())));
        for odd in ["", "10.1.0.0", "any,10.1.0.0/16"] {
            assert!(odd.parse::<Cidrs>().is_err(), "{odd}");
        }
    }

    #[test]
    fn what_the_leader_notes_applies_and_without_an_account_there_what_the_member_has_noted() {
        let account = |ranges: &[&str]| -> Meta<ServiceAccount> {
            let ranges = ranges.iter().map(|ranges| (label::ADDRESS_RANGES, *ranges));
            let annotations: BTreeMap<_, _> = ranges.collect();
            serde_json::from_value(json!({"metadata": {"name": "a", "annotations": annotations}})).unwrap()
        };
        let note = |id: &str, ranges: Option<&str>| {
            let [cluster_set, cluster_id] = ["demo", id].map(|text| Some(text.to_owned()));
            Some(Note { cluster_set, cluster_id, ranges: ranges.map(str::to_owned), ..Note::default() })
        };
        let by = |account: Option<&Meta<ServiceAccount>>, note| Noted::by(account, note, ("demo", "east"));
        let (here, before) = (|ranges: Option<&str>| Noted::Here(ranges.map(str::to_owned)), "10.1.0.0/16");
        assert_eq!(by(None, note("east", Some(before))), Noted::Before(before.into()));
        assert_eq!(by(None, note("west", Some(before))), here(None), "it was another member");
        assert_eq!(by(None, note("east", None)), here(None));
        assert_eq!(by(None, None), here(None));
        for said in [&["10.2.0.0/16"][..], &[""], &[]] {
            assert_eq!(by(Some(&account(said)), note("east", Some(before))), here(said.first().copied()));
        }
    }

    #[test]
    fn kubeadm_says_which_networks_a_cluster_has() {
        let told = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n  dnsDomain: cluster.local\n  \
                    podSubnet: 10.244.0.0/16,fd00:10:244::/56\n  serviceSubnet: 10.96.0.0/12\n";
        let of = networking(told);
        assert_eq!(found(&of.pod_subnet).unwrap().to_string(), "10.244.0.0/16,fd00:10:244::/56");
        assert_eq!(of.service_subnet, "10.96.0.0/12");
        for odd in ["", ":", "networking: 7", "networking: {podSubnet: [1]}", "networking: {}"] {
            assert_eq!(found(&networking(odd).pod_subnet), None, "{odd}");
        }
    }
}
