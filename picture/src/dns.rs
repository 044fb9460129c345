//! CoreDNS of a cluster, and whether it gives imports names.
//!
//! | module | holds |
//! |---|---|
//! | [`corefile`] | the Corefile with and without a server block for the zone, decided from its text |
//! | [`rights`] | what CoreDNS may watch |

pub mod corefile;
pub mod rights;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodSpec, rbac::v1::PolicyRule};

use self::corefile::ZONE;
use crate::gap::{Gap, Seen};

/// Namespace of CoreDNS in most clusters.
pub const NAMESPACE: &str = "kube-system";
/// Name of CoreDNS' ConfigMap, Deployment, container and ServiceAccount in most clusters.
pub const NAME: &str = "coredns";
/// The key of the ConfigMap that holds the Corefile.
pub const KEY: &str = "Corefile";

/// What is known of CoreDNS by its usual name.
#[derive(Clone, Debug)]
pub struct Dns {
    /// The Corefile; none if there is no such ConfigMap.
    pub corefile: Seen<Option<String>>,
    /// Files of other ConfigMaps that its Pods mount, which it may import.
    pub mounted: Seen<Vec<String>>,
    /// The Deployment; none where something else runs CoreDNS.
    pub deployment: Seen<Option<Deployment>>,
    /// Rules of the ClusterRoles that are bound to its ServiceAccount.
    pub rules: Seen<Vec<PolicyRule>>,
}

/// Whether CoreDNS gives imports names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// It does.
    Given,
    /// Something is missing: the code, and a sentence.
    Missing(u16, String),
    /// Not known: a part of a sentence says why.
    Unknown(String),
}

impl Dns {
    /// A CoreDNS of which nothing is known, and why.
    pub fn unknown(gap: &Gap) -> Self {
        Self {
            corefile: Err(gap.clone()),
            mounted: Err(gap.clone()),
            deployment: Err(gap.clone()),
            rules: Err(gap.clone()),
        }
    }

    /// Decides whether CoreDNS gives imports names. One command adds the block and the right, so the first of both that is missing counts.
    pub fn names(&self) -> Names {
        let text = match &self.corefile {
            Ok(Some(text)) => text,
            Ok(None) => {
                let missing = format!(
                    "there is no CoreDNS in ConfigMap {NAMESPACE}/{NAME}, another DNS server is not looked at"
                );
                return Names::Unknown(missing);
            }
            Err(gap) => return Names::Unknown(format!("ConfigMap {NAMESPACE}/{NAME}: {gap}")),
        };
        self.block(text).or_else(|| self.right()).or_else(|| self.pods()).unwrap_or(Names::Given)
    }

    /// Reports a missing server block.
    fn block(&self, text: &str) -> Option<Names> {
        let is_named = |text: &str| corefile::has_ours(text) == Ok(true) || corefile::claim(text).is_some();
        match &self.mounted {
            _ if is_named(text) => None,
            Ok(files) if files.iter().any(|file| is_named(file)) => None,
            Ok(_) => Some(Names::Missing(
                701,
                format!("CoreDNS has no server block for {ZONE} (ConfigMap {NAMESPACE}/{NAME})"),
            )),
            Err(gap) => Some(Names::Unknown(format!("ConfigMaps that CoreDNS mounts: {gap}"))),
        }
    }

    /// Reports a missing right.
    fn right(&self) -> Option<Names> {
        match &self.rules {
            Ok(rules) if rights::may_watch_imports(rules) => None,
            Ok(_) => {
                let deployment = self.deployment.as_ref().ok().and_then(Option::as_ref);
                let account =
                    account(deployment.and_then(|deployment| deployment.spec.template.spec.as_ref()));
                let what =
                    format!("CoreDNS may not watch ServiceImports (ServiceAccount {NAMESPACE}/{account})");
                Some(Names::Missing(702, what))
            }
            // Without a Pod the right is of no use.
            Err(gap) => {
                Some(self.pods().unwrap_or_else(|| Names::Unknown(format!("rights of CoreDNS: {gap}"))))
            }
        }
    }

    /// Reports that no Pod is ready.
    fn pods(&self) -> Option<Names> {
        let deployment = match &self.deployment {
            Ok(deployment) => deployment.as_ref()?,
            Err(gap) => return Some(Names::Unknown(format!("Deployment {NAMESPACE}/{NAME}: {gap}"))),
        };
        let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default();
        let wanted = deployment.spec.replicas.unwrap_or(1);
        let what = format!("no Pod of CoreDNS is ready (0 of {wanted} in Deployment {NAMESPACE}/{NAME})");
        (ready == 0).then_some(Names::Missing(703, what))
    }
}

/// The ServiceAccount of CoreDNS, whose Pods a Deployment makes of this template; without one, the usual.
pub fn account(pod: Option<&PodSpec>) -> &str {
    let Some(pod) = pod else { return NAME };
    pod.service_account_name.as_deref().filter(|name| !name.is_empty()).unwrap_or("default")
}

/// Names of other ConfigMaps than `own` that its Pods mount.
pub fn mounted<'a>(pod: &'a PodSpec, own: &str) -> impl Iterator<Item = &'a str> {
    let volumes = pod.volumes.iter().flatten();
    let names = volumes.filter_map(|volume| volume.config_map.as_ref().map(|map| map.name.as_str()));
    names.filter(move |name| *name != own)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const STOCK: &str = ".:53 {\n    kubernetes cluster.local\n}\n";

    fn deployment(ready: u32) -> Deployment {
        let template = json!({"spec": {"serviceAccountName": "dns", "containers": []}});
        serde_json::from_value(json!({
            "metadata": {"name": NAME},
            "spec": {"replicas": 2, "selector": {}, "template": template},
            "status": {"readyReplicas": ready},
        }))
        .unwrap()
    }

    fn well() -> Dns {
        let rule = |value: Value| serde_json::from_value(value).unwrap();
        let imports = json!({"apiGroups": ["multicluster.x-k8s.io"], "resources": ["serviceimports"], "verbs": ["list", "watch"]});
        Dns {
            corefile: Ok(Some(corefile::add(STOCK).unwrap())),
            mounted: Ok(vec![]),
            deployment: Ok(Some(deployment(1))),
            rules: Ok(vec![rule(imports)]),
        }
    }

    fn code(dns: &Dns) -> Option<u16> {
        match dns.names() {
            Names::Missing(code, _) => Some(code),
            Names::Given | Names::Unknown(_) => None,
        }
    }

    #[test]
    fn a_stock_coredns_lacks_the_block_and_nothing_else_is_said() {
        assert_eq!(well().names(), Names::Given);
        let stock = Dns { corefile: Ok(Some(STOCK.into())), rules: Ok(vec![]), ..well() };
        assert_eq!(code(&stock), Some(701));
        let by_hand = Dns { mounted: Ok(vec!["clusterset.local:53 {\n}\n".into()]), ..stock };
        assert_eq!(code(&by_hand), Some(702), "a file that it mounts has the block");
    }

    #[test]
    fn a_missing_right_names_the_account_and_pods_count_last() {
        let Names::Missing(702, what) =
            (Dns { rules: Ok(vec![]), deployment: Ok(Some(deployment(0))), ..well() }).names()
        else {
            panic!("the right is missing");
        };
        assert!(what.contains("ServiceAccount kube-system/dns"), "{what}");
        let none_ready = Dns { deployment: Ok(Some(deployment(0))), ..well() };
        assert_eq!(code(&none_ready), Some(703));
        assert_eq!(code(&Dns { rules: Err(Gap::NotLooked), ..none_ready }), Some(703));
        assert_eq!(Dns { deployment: Ok(None), ..well() }.names(), Names::Given, "a DaemonSet");
    }

    #[test]
    fn what_may_not_be_read_is_no_finding() {
        let gap = || Gap::Forbidden("no".into());
        for unknown in [
            Dns::unknown(&gap()),
            Dns { corefile: Ok(None), ..Dns::unknown(&Gap::NotLooked) },
            Dns { corefile: Ok(Some(STOCK.into())), mounted: Err(gap()), ..well() },
            Dns { rules: Err(gap()), ..well() },
            Dns { deployment: Err(gap()), ..well() },
        ] {
            assert!(matches!(unknown.names(), Names::Unknown(_)), "{unknown:?}");
        }
    }
}
