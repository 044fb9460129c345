//! `freeport dns`: names for the whole set, by the CoreDNS that a cluster has.
//!
//! | module | holds |
//! |---|---|
//! | `adding` | a server block for the zone, and the right to watch imports |
//! | `removing` | taking both back |
//! | `corefile` | what becomes of the Corefile, decided from its text |
//! | `right` | what CoreDNS may read, and what it lacks |
//! | `version` | which CoreDNS an image holds |
//! | `server` | CoreDNS as it is found |
//! | `change` | the Corefile shown, or written |
//! | `restart` | CoreDNS started anew |

mod adding;
mod change;
mod corefile;
mod removing;
mod restart;
mod right;
mod server;
mod version;

use std::{fmt, str::FromStr, time::Duration};

use crate::{Error, KubeContext, cluster::Cluster, eraser::Say};

/// The zone of a set, which the Multi-Cluster Services API names.
const ZONE: &str = "clusterset.local";

/// What is done to which CoreDNS.
#[derive(Clone, Debug)]
pub struct DnsOptions {
    /// The cluster.
    pub cluster: KubeContext,
    /// Where the Corefile is; the Deployment has the same name.
    pub config_map: Namespaced,
    /// Take it back.
    pub remove: bool,
    /// Do it, and do not only show it.
    pub apply: bool,
    /// How long to wait for the new Pods.
    pub timeout: Duration,
}

impl DnsOptions {
    /// The command with the same options and these flags.
    fn command(&self, flags: &str) -> String {
        let mut line = format!("freeport dns {flags}");
        if let Some(file) = &self.cluster.file {
            line += &format!(" --kubeconfig {}", file.display());
        }
        if let Some(name) = &self.cluster.name {
            line += &format!(" --context {name}");
        }
        if self.config_map != Namespaced::coredns() {
            line += &format!(" --config-map {}", self.config_map);
        }
        line
    }
}

/// An object in a Namespace, written `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaced {
    /// Its Namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Namespaced {
    /// What CoreDNS' ConfigMap and Deployment are called nearly everywhere.
    pub fn coredns() -> Self {
        Self { namespace: "kube-system".into(), name: "coredns".into() }
    }
}

impl fmt::Display for Namespaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for Namespaced {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.into(), name: name.into() })
            }
            _ => Err("write NAMESPACE/NAME".into()),
        }
    }
}

/// Shows, or does, what CoreDNS needs to answer for names of the set; or takes that back. Safe to run again: what is as it should
/// be is left alone, and what somebody else has done, too.
///
/// `say` gets one line for each thing done, and what is shown.
///
/// # Errors
/// Those of [`Error`]. [`Error::NotRolledOut`] when the new Pods do not get ready in time.
pub async fn dns(options: &DnsOptions, say: Say<'_>) -> Result<(), Error> {
    let cluster = Cluster::open(&options.cluster).await?;
    if options.remove {
        removing::remove(&cluster, options, say).await
    } else {
        adding::add(&cluster, options, say).await
    }
}

/// What the Corefile does not allow.
fn undecided(cluster: &Cluster, config_map: &Namespaced, error: &corefile::Error) -> Error {
    cluster.refuse(format!("ConfigMap {config_map}, {}: {error}", server::KEY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_run_next_is_about_the_same_server() {
        let options = |cluster, config_map: &str| DnsOptions {
            cluster,
            config_map: config_map.parse().unwrap(),
            remove: false,
            apply: false,
            timeout: Duration::ZERO,
        };
        let usual = options(KubeContext::default(), "kube-system/coredns");
        assert_eq!(usual.command("--apply"), "freeport dns --apply");
        let cluster = KubeContext { file: Some("all".into()), name: Some("east".into()) };
        assert_eq!(
            options(cluster, "openshift-dns/dns-default").command("--remove --apply"),
            "freeport dns --remove --apply --kubeconfig all --context east --config-map openshift-dns/dns-default"
        );
    }

    #[test]
    fn half_a_name_is_none() {
        for text in ["", "coredns", "/coredns", "kube-system/", "a/b/c"] {
            assert!(text.parse::<Namespaced>().is_err(), "{text}");
        }
    }
}
