//! Clients of API servers and of etcd.

use std::{fs, io, path::Path};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{
    Error,
    cluster_layout::ClusterLayout,
    kubeconfig::{self, Access},
};

/// With a kubeconfig.
pub(crate) async fn of_file(kubeconfig: &Path) -> Result<Client, Error> {
    let read = Kubeconfig::read_from(kubeconfig).map_err(io::Error::other);
    client_of(read.map_err(Error::file(kubeconfig))?).await.map_err(Error::file(kubeconfig))
}

/// For the health of a cluster's etcd.
pub(crate) async fn of_etcd(cluster: &ClusterLayout) -> Result<Client, Error> {
    let dir = cluster.pki("etcd");
    let read = |file: &str| fs::read_to_string(dir.join(file)).map_err(Error::file(dir.join(file)));
    let text = kubeconfig::render(&[Access {
        cluster: "etcd",
        server: &cluster.etcd_url(),
        ca: &read("ca.crt")?,
        user: "etcd".into(),
        certificate: &read("client.crt")?,
        key: &read("client.key")?,
    }]);
    let access = text
        .map_err(io::Error::other)
        .and_then(|text| Kubeconfig::from_yaml(&text).map_err(io::Error::other));
    client_of(access.map_err(Error::file(&dir))?).await.map_err(Error::file(dir))
}

async fn client_of(kubeconfig: Kubeconfig) -> io::Result<Client> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(io::Error::other)?;
    // Local servers are reached without a proxy.
    config.proxy_url = None;
    Client::try_from(config).map_err(io::Error::other)
}
