//! Whether requests to an API server use a proxy: decided as kubectl and other Go programs do.
//!
//! kube takes a proxy from the environment too, but measures `NO_PROXY` against the proxy instead of the API server.

use std::env;

use api::proxy;
use kube::Config;

/// Sets the proxy for the API server of `config`; `said` is the one in the kubeconfig.
pub(crate) fn choose(config: &mut Config, said: Option<&str>) {
    let chosen = proxy::of(&config.cluster_url, said, |name| env::var(name).ok());
    config.proxy_url = chosen.and_then(|proxy| proxy.parse().ok());
}
