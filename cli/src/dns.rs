//! `freeport dns`: gives imports names, in the CoreDNS that a cluster has.
//!
//! | module | holds |
//! |---|---|
//! | `adding` | adds a server block for the zone, and the right to watch ServiceImports |
//! | `removing` | takes both back |
//! | [`corefile`](picture::dns::corefile) | the Corefile with and without that block, decided from its text |
//! | `server` | CoreDNS as the cluster has it, and its version |
//! | `change` | writes the Corefile, restarts CoreDNS; or shows both |

mod adding;
mod change;
mod removing;
mod server;

use std::{fmt, str::FromStr, time::Duration};

use picture::dns::{NAME, NAMESPACE};

use crate::{Error, KubeContext, cluster::Cluster, eraser::Say};

/// Which CoreDNS to change, and how.
#[derive(Clone, Debug)]
pub struct DnsOptions {
    /// The cluster.
    pub cluster: KubeContext,
    /// The ConfigMap with the Corefile; the Deployment has the same name.
    pub config_map: Namespaced,
    /// Take back what was added.
    pub remove: bool,
    /// Do it; otherwise only show it.
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
    /// Most clusters call CoreDNS' ConfigMap and Deployment so.
    pub fn coredns() -> Self {
        Self { namespace: NAMESPACE.into(), name: NAME.into() }
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

/// Shows, or with `apply` does, what CoreDNS needs to answer for names of imports; with `remove` takes it back. Safe to run
/// again: it changes only what differs, and nothing that somebody else wrote.
///
/// `say` gets one line for each thing done, and what is shown.
///
/// # Errors
/// Those of [`Error`]. [`Error::Refused`] if the Corefile is not one that this command changes: then `say` has got what to add
/// by hand. [`Error::NotRolledOut`] if the new Pods are not ready in time.
pub async fn dns(options: &DnsOptions, say: Say<'_>) -> Result<(), Error> {
    let cluster = Cluster::open(&options.cluster).await?;
    if options.remove {
        removing::remove(&cluster, options, say).await
    } else {
        adding::add(&cluster, options, say).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_has_the_same_options() {
        let options = |cluster, config_map: &str| DnsOptions {
            cluster,
            config_map: config_map.parse().unwrap(),
            remove: false,
            apply: false,
            timeout: Duration::ZERO,
        };
        let usual = options(KubeContext::default(), "kube-system/coredns");
        assert_eq!(usual.command("--apply"), "freeport dns --apply");
        let cluster =
            KubeContext { file: Some("all".into()), name: Some("east".into()), ..KubeContext::default() };
        assert_eq!(
            options(cluster, "openshift-dns/dns-default").command("--remove --apply"),
            "freeport dns --remove --apply --kubeconfig all --context east --config-map openshift-dns/dns-default"
        );
    }

    #[test]
    fn half_a_name_is_refused() {
        for text in ["", "coredns", "/coredns", "kube-system/", "a/b/c"] {
            assert!(text.parse::<Namespaced>().is_err(), "{text}");
        }
    }
}
