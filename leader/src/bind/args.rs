//! What a provider may be told.

use api::bind::{
    duration::GoDuration,
    identity::is_prefix,
    resource::{InformerScope, Isolation},
};
use clap::builder::NonEmptyStringValueParser;
use kit::{certificate::certificates, client::is_server_name};

/// Flags of API binding.
#[derive(clap::Args, Clone, Debug)]
pub struct BindArgs {
    /// Offer APIs of this cluster to others, as BindableResourcesRequests and APIServiceExportRequests ask for them.
    #[arg(long, env = "FREEPORT_BIND", requires_if("true", "bind_address"))]
    pub bind: bool,
    /// How the objects of consumers are kept apart, unless a template says otherwise.
    #[arg(
        long,
        env = "FREEPORT_BIND_ISOLATION",
        alias = "isolation",
        value_enum,
        default_value = "prefixed"
    )]
    bind_isolation: Apart,
    /// What consumers watch: the Namespaces that are theirs, or, where they may read the objects of others, the whole cluster.
    #[arg(
        long,
        env = "FREEPORT_BIND_SCOPE",
        alias = "consumer-scope",
        value_enum,
        default_value = "namespaced"
    )]
    bind_scope: Scope,
    /// What the names of cluster namespaces begin with.
    #[arg(long, env = "FREEPORT_BIND_NAMESPACE_PREFIX", value_name = "PREFIX", default_value = "kube-bind-", value_parser = prefix)]
    pub(super) bind_namespace_prefix: String,
    /// Address of this cluster's API server for consumers, as https://HOST:PORT.
    #[arg(long, env = "FREEPORT_BIND_ADDRESS", value_name = "URL", value_parser = address)]
    pub(super) bind_address: Option<String>,
    /// Authorities of that API server, PEM [default: those that Kubernetes gives Pods].
    #[arg(long, env = "FREEPORT_BIND_CA_FILE", value_name = "FILE", value_parser = authorities)]
    pub(super) bind_ca_file: Option<Authorities>,
    /// Name in that API server's certificate, where it is another one than the address has.
    #[arg(long, env = "FREEPORT_BIND_SERVER_NAME", value_name = "NAME", value_parser = server_name)]
    pub(super) bind_server_name: Option<String>,
    /// What people call this provider.
    #[arg(long, env = "FREEPORT_BIND_PRETTY_NAME", value_name = "NAME", default_value = "Freeport", value_parser = NonEmptyStringValueParser::new())]
    pub(super) bind_pretty_name: String,
    /// For how long the token of a consumer counts, as 720h. It is renewed when half of that is over.
    #[arg(long, env = "FREEPORT_BIND_TOKEN_LIFETIME", value_name = "DURATION", default_value = "720h", value_parser = GoDuration::of_token)]
    pub(super) bind_token_lifetime: GoDuration,
}

/// Certificates, PEM.
#[derive(Clone, Debug)]
pub(super) struct Authorities(pub(super) Vec<u8>);

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Apart {
    Prefixed,
    Namespaced,
    None,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Namespaced,
    Cluster,
}

impl BindArgs {
    pub(super) fn isolation(&self) -> Isolation {
        match self.bind_isolation {
            Apart::Prefixed => Isolation::Prefixed,
            Apart::Namespaced => Isolation::Namespaced,
            Apart::None => Isolation::None,
        }
    }

    pub(super) fn scope(&self) -> InformerScope {
        match self.bind_scope {
            Scope::Namespaced => InformerScope::Namespaced,
            Scope::Cluster => InformerScope::Cluster,
        }
    }
}

fn address(text: &str) -> Result<String, String> {
    let uri = api::cluster_set::server_uri(text);
    let host = uri.as_ref().and_then(|uri| uri.host()).map(|host| host.trim_matches(['[', ']']));
    match host.is_some_and(is_server_name) {
        true => Ok(text.to_owned()),
        false => Err("must have the form https://HOST[:PORT]".to_owned()),
    }
}

/// Consumers could not even ask.
fn server_name(text: &str) -> Result<String, String> {
    match is_server_name(text) {
        true => Ok(text.to_owned()),
        false => Err("must be a DNS name or an address".to_owned()),
    }
}

/// Consumers would trust nobody.
fn authorities(file: &str) -> Result<Authorities, String> {
    let pem = std::fs::read(file).map_err(|error| format!("cannot be read: {error}"))?;
    certificates(&pem).map_err(|error| error.to_string())?;
    Ok(Authorities(pem))
}

fn prefix(text: &str) -> Result<String, String> {
    is_prefix(text).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Args {
        #[command(flatten)]
        bind: BindArgs,
    }

    fn parse(args: &[&str]) -> Result<BindArgs, i32> {
        let args = ["x"].iter().chain(args);
        Args::try_parse_from(args).map(|args| args.bind).map_err(|error| error.exit_code())
    }

    #[test]
    fn c20_another_value_is_refused_and_is_not_none() {
        let all = parse(&[
            "--bind",
            "--bind-address",
            "https://l:6443",
            "--isolation",
            "none",
            "--consumer-scope",
            "cluster",
        ]);
        let all = all.unwrap();
        assert_eq!((all.isolation(), all.scope()), (Isolation::None, InformerScope::Cluster));
        assert_eq!(parse(&[]).unwrap().isolation(), Isolation::Prefixed);
        for right in ["https://[fd00::1]:6443", "https://10.0.0.1:6443"] {
            assert!(parse(&["--bind-address", right]).is_ok(), "{right}");
        }
        for wrong in [
            &["--bind"] as &[&str],
            &["--bind-isolation", "nonsense"],
            &["--bind-scope", ""],
            &["--bind-address", "http://l"],
            &["--bind-address", "https://a_b..c:6443"],
            &["--bind-server-name", "not a name"],
            &["--bind-server-name", ""],
            &["--bind-token-lifetime", "5m"],
            &["--bind-namespace-prefix", "a.b"],
            &["--bind-pretty-name", ""],
        ] {
            assert_eq!(parse(wrong).unwrap_err(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn authorities_that_cannot_be_read_are_a_wrong_flag() {
        let no_certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for wrong in ["/nonexistent/ca.crt", no_certificate] {
            assert_eq!(parse(&["--bind-ca-file", wrong]).unwrap_err(), 2, "{wrong}");
        }
    }
}
