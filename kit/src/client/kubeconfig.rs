//! A kubeconfig that somebody else wrote: it says where to and as whom, and has no other say over this process.

use api::token::Claims;
use kube::{
    Client, Config,
    config::{AuthInfo, Cluster, Kubeconfig},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use secrecy::ExposeSecret;

use super::tuned;

/// Why a kubeconfig cannot be used. The messages hold nothing of a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is no kubeconfig.
    #[error("it cannot be read as a kubeconfig")]
    Undecodable,
    /// Something has to be there that is not.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// It would have this process do what the writer of a Secret must not decide.
    #[error("{0} is refused: only certificates, keys and tokens that are in the kubeconfig itself are used")]
    Refused(&'static str),
    /// A value is not what it has to be.
    #[error("its {0} cannot be used")]
    Malformed(&'static str),
}

/// Where a kubeconfig leads, and as whom.
#[derive(Clone, Debug)]
pub struct Target {
    config: Config,
    /// Namespace of the current context.
    pub namespace: String,
    /// The uid of the ServiceAccount whose token it has, as the token says; nobody has asked its cluster.
    pub account: Option<String>,
    /// Name of that ServiceAccount as a user.
    pub(super) user: Option<String>,
}

impl Target {
    /// What the current context of a kubeconfig says.
    ///
    /// # Errors
    /// [`Error`] where it is incomplete, or asks for more than a connection.
    pub fn read(kubeconfig: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(kubeconfig).map_err(|_| Error::Undecodable)?;
        let all: Kubeconfig = serde_yaml::from_str(text).map_err(|_| Error::Undecodable)?;
        let current =
            all.current_context.filter(|name| !name.is_empty()).ok_or(Error::Missing("current-context"))?;
        let context = all.contexts.into_iter().find(|context| context.name == current);
        let context =
            context.and_then(|context| context.context).ok_or(Error::Missing("context of that name"))?;
        let namespace = context.namespace.filter(|name| !name.is_empty());
        let namespace = namespace.ok_or(Error::Missing("namespace in its current context"))?;
        let cluster = all.clusters.into_iter().find(|cluster| cluster.name == context.cluster);
        let cluster = cluster
            .and_then(|cluster| cluster.cluster)
            .ok_or(Error::Missing("cluster of its current context"))?;
        let user = all.auth_infos.into_iter().find(|user| Some(&user.name) == context.user.as_ref());
        let user =
            user.and_then(|user| user.auth_info).ok_or(Error::Missing("user of its current context"))?;
        let claims =
            user.token.as_ref().and_then(|token| Claims::of(token.expose_secret())).unwrap_or_default();
        let account = claims.uid;
        let name = claims.account.map(|account| account.user());
        Ok(Self { config: config(cluster, user)?, namespace, account, user: name })
    }

    /// Address of the API server.
    pub fn server(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// A client with a connection of its own.
    ///
    /// # Errors
    /// [`Error::Malformed`] where a certificate or a key cannot be used.
    pub fn connect(&self) -> Result<Client, Error> {
        tuned(self.config.clone(), None).map_err(|_| Error::Malformed("certificate, key or token"))
    }
}

fn config(cluster: Cluster, user: AuthInfo) -> Result<Config, Error> {
    let asks = [
        (cluster.insecure_skip_tls_verify == Some(true), "insecure-skip-tls-verify"),
        (cluster.certificate_authority.is_some(), "certificate-authority"),
        (cluster.proxy_url.is_some(), "proxy-url"),
        (user.exec.is_some(), "exec"),
        (user.auth_provider.is_some(), "auth-provider"),
        (user.token_file.is_some() || user.other.contains_key("token-file"), "tokenFile"),
        (user.client_certificate.is_some(), "client-certificate"),
        (user.client_key.is_some(), "client-key"),
        (user.username.is_some() || user.password.is_some(), "username and password"),
        (user.impersonate.is_some() || user.impersonate_groups.is_some(), "as"),
    ];
    if let Some((_, field)) = asks.into_iter().find(|(is_there, _)| *is_there) {
        return Err(Error::Refused(field));
    }
    let server = cluster.server.ok_or(Error::Missing("server"))?;
    let mut config = Config::new(api::cluster_set::server_uri(&server).ok_or(Error::Malformed("server"))?);
    if let Some(data) = cluster.certificate_authority_data {
        config.root_cert = Some(authorities(&data)?);
    }
    config.tls_server_name = cluster.tls_server_name;
    config.auth_info = AuthInfo {
        token: user.token,
        client_certificate_data: user.client_certificate_data,
        client_key_data: user.client_key_data,
        ..AuthInfo::default()
    };
    Ok(config)
}

fn authorities(data: &str) -> Result<Vec<Vec<u8>>, Error> {
    const FIELD: &str = "certificate-authority-data";
    let bytes: k8s_openapi::ByteString =
        serde_json::from_value(data.into()).map_err(|_| Error::Malformed(FIELD))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes.0).collect();
    let certificates = certificates.map_err(|_| Error::Malformed(FIELD))?;
    if certificates.is_empty() {
        return Err(Error::Malformed(FIELD));
    }
    Ok(certificates.iter().map(|certificate| certificate.to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kubeconfig(cluster: &Value, user: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "default",
            "contexts": [{"name": "default", "context": {"cluster": "c", "user": "u", "namespace": "kube-bind-x"}}],
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}],
        })
    }

    fn read(kubeconfig: &Value) -> Result<Target, Error> {
        Target::read(kubeconfig.to_string().as_bytes())
    }

    #[test]
    fn it_leads_to_a_server_and_a_namespace() {
        let target =
            read(&kubeconfig(&json!({"server": "https://leader:6443"}), &json!({"token": "t"}))).unwrap();
        assert_eq!(
            (target.server().as_str(), target.namespace.as_str()),
            ("https://leader:6443/", "kube-bind-x")
        );
        assert!(!format!("{target:?}").contains("\"t\""), "a token in a log");
    }

    #[test]
    fn what_runs_a_program_reads_a_file_or_skips_verification_is_refused_by_name() {
        let server = || json!({"server": "https://leader:6443"});
        for (cluster, user, field) in [
            (
                json!({"server": "https://l", "insecure-skip-tls-verify": true}),
                json!({}),
                "insecure-skip-tls-verify",
            ),
            (
                json!({"server": "https://l", "certificate-authority": "/etc/x"}),
                json!({}),
                "certificate-authority",
            ),
            (json!({"server": "https://l", "proxy-url": "http://evil"}), json!({}), "proxy-url"),
            (server(), json!({"exec": {"command": "sh", "apiVersion": "v1"}}), "exec"),
            (server(), json!({"auth-provider": {"name": "gcp", "config": {}}}), "auth-provider"),
            (server(), json!({"tokenFile": "/var/run/token"}), "tokenFile"),
            (server(), json!({"client-certificate": "/x"}), "client-certificate"),
            (server(), json!({"client-key": "/x"}), "client-key"),
            (server(), json!({"username": "a", "password": "b"}), "username and password"),
            (server(), json!({"as": "admin"}), "as"),
        ] {
            assert_eq!(read(&kubeconfig(&cluster, &user)).unwrap_err(), Error::Refused(field));
        }
        assert_eq!(Target::read(b"\xff").unwrap_err(), Error::Undecodable);
        let plain = read(&kubeconfig(&json!({"server": "http://leader"}), &json!({}))).unwrap_err();
        assert_eq!(plain, Error::Malformed("server"));
        let mut without = kubeconfig(&server(), &json!({}));
        without["contexts"][0]["context"]["namespace"] = json!("");
        assert_eq!(read(&without).unwrap_err(), Error::Missing("namespace in its current context"));
    }
}
