//! Kubeconfig files.

use std::{fs, io};

use k8s_openapi::ByteString;
use serde::Serialize;

use crate::cluster_layout::ClusterLayout;

/// Someone's access to a cluster; certificates and keys in PEM.
pub(crate) struct Access<'a> {
    /// Name of the context and of the cluster.
    pub(crate) cluster: &'a str,
    pub(crate) server: &'a str,
    pub(crate) ca: &'a str,
    /// Name of the user.
    pub(crate) user: String,
    pub(crate) certificate: &'a str,
    pub(crate) key: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    kind: &'a str,
    clusters: Vec<Named<'a, Cluster<'a>>>,
    users: Vec<Named<'a, User>>,
    contexts: Vec<Named<'a, Context<'a>>>,
    current_context: &'a str,
}

#[derive(Serialize)]
struct Named<'a, T> {
    name: &'a str,
    #[serde(flatten)]
    value: T,
}

#[derive(Serialize)]
struct Cluster<'a> {
    cluster: ClusterFields<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterFields<'a> {
    server: &'a str,
    certificate_authority_data: ByteString,
}

#[derive(Serialize)]
struct User {
    user: UserFields,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct UserFields {
    client_certificate_data: ByteString,
    client_key_data: ByteString,
}

#[derive(Serialize)]
struct Context<'a> {
    context: ContextFields<'a>,
}

#[derive(Serialize)]
struct ContextFields<'a> {
    cluster: &'a str,
    user: &'a str,
}

/// A file with a context per access, named as the cluster; the first is the current one.
///
/// In JSON, which is YAML as well: unlike our YAML writer, Kubernetes reads YAML 1.1, where a cluster that is
/// named `no` would be a boolean without quotes.
pub(crate) fn render(accesses: &[Access<'_>]) -> Result<String, serde_json::Error> {
    let bytes = |pem: &str| ByteString(pem.as_bytes().to_vec());
    serde_json::to_string_pretty(&Kubeconfig {
        api_version: "v1",
        kind: "Config",
        clusters: accesses
            .iter()
            .map(|access| Named {
                name: access.cluster,
                value: Cluster {
                    cluster: ClusterFields {
                        server: access.server,
                        certificate_authority_data: bytes(access.ca),
                    },
                },
            })
            .collect(),
        users: accesses
            .iter()
            .map(|access| Named {
                name: &access.user,
                value: User {
                    user: UserFields {
                        client_certificate_data: bytes(access.certificate),
                        client_key_data: bytes(access.key),
                    },
                },
            })
            .collect(),
        contexts: accesses
            .iter()
            .map(|access| Named {
                name: access.cluster,
                value: Context { context: ContextFields { cluster: access.cluster, user: &access.user } },
            })
            .collect(),
        current_context: accesses.first().map_or("", |access| access.cluster),
    })
}

/// A file with a context per cluster, for the user whose certificate has that file name.
pub(crate) fn of(clusters: &[&ClusterLayout], user: &str) -> io::Result<String> {
    struct Files {
        server: String,
        pem: [String; 3],
    }
    let read = |cluster: &&ClusterLayout| {
        let pem = |file: String| fs::read_to_string(cluster.pki(file));
        let pem = [pem("ca.crt".into())?, pem(format!("{user}.crt"))?, pem(format!("{user}.key"))?];
        Ok::<_, io::Error>(Files { server: cluster.server(), pem })
    };
    let files = clusters.iter().map(read).collect::<io::Result<Vec<_>>>()?;
    let accesses: Vec<_> = clusters
        .iter()
        .zip(&files)
        .map(|(cluster, Files { server, pem: [ca, certificate, key] })| Access {
            cluster: cluster.name(),
            server,
            ca,
            user: format!("{}-{user}", cluster.name()),
            certificate,
            key,
        })
        .collect();
    render(&accesses).map_err(io::Error::other)
}

/// Writes the kubeconfig of a component into the cluster's directory.
pub(crate) fn write_for(cluster: &ClusterLayout, component: &str) -> io::Result<()> {
    let path = cluster.dir().join(format!("{component}.kubeconfig"));
    cluster.layout.write_private(&path, of(&[cluster], component)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;

    use super::*;

    #[test]
    fn a_context_per_cluster() {
        let access = |cluster, server| Access {
            cluster,
            server,
            ca: "the CA",
            user: format!("{cluster}-admin"),
            certificate: "the certificate",
            key: "the key",
        };
        let text =
            render(&[access("east", "https://127.0.0.1:1"), access("west", "https://127.0.0.1:2")]).unwrap();
        let read = Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("east"));
        let contexts: Vec<_> = read.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!(contexts, ["east", "west"]);
        let west = read.contexts[1].context.as_ref().unwrap();
        assert_eq!((west.cluster.as_str(), west.user.as_deref()), ("west", Some("west-admin")));
        let server = read.clusters[1].cluster.as_ref().unwrap();
        assert_eq!(server.server.as_deref(), Some("https://127.0.0.1:2"));
        assert_eq!(server.certificate_authority_data.as_deref(), Some("dGhlIENB"));
        assert!(server.insecure_skip_tls_verify.is_none());
        assert!(text.contains("\"name\": \"east\""), "names are quoted: {text}");
    }
}
