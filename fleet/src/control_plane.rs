//! What one control plane is made of: files and command lines.

use std::{fs, io};

use crate::{
    Family, cluster_layout::ClusterLayout, component::Ports, kubeconfig, layout::Layout, pki, subnet::list,
};

/// Writes only, each once, when it is complete: tests count needless writes.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
";

/// How many bits tell Nodes of one cluster apart in its network of Pods: so many Nodes get a part of it.
const NODE_BITS: u8 = 3;

/// Writes certificates and configuration into the cluster's directory.
pub(crate) fn prepare(cluster: &ClusterLayout) -> io::Result<()> {
    for dir in [cluster.pki(""), cluster.dir().join("etcd")] {
        Layout::make_private_dir(&dir)?;
    }
    let node = cluster.machine_addresses();
    pki::write(&cluster.pki(""), cluster.name(), &node, &api_server_names(cluster))?;
    fs::write(audit_policy(cluster), AUDIT_POLICY)?;
    kubeconfig::write_for(cluster, "controller-manager")?;
    if cluster.has_node() {
        kubeconfig::write_for(cluster, "scheduler")?;
    }
    Ok(())
}

pub(crate) fn etcd(cluster: &ClusterLayout) -> Vec<String> {
    let Ports { etcd_peer, .. } = cluster.record.ports;
    let client = cluster.etcd_url();
    let peer = cluster.url(etcd_peer);
    let mut args = Args::new(cluster);
    args.path("data-dir", "etcd")
        .value("name", "default")
        .value("listen-client-urls", &client)
        .value("advertise-client-urls", &client)
        .value("listen-peer-urls", &peer)
        .value("initial-advertise-peer-urls", &peer)
        .value("initial-cluster", &format!("default={peer}"))
        .value("log-level", "warn")
        // A fleet does not survive its machine.
        .value("unsafe-no-fsync", "true");
    for prefix in ["", "peer-"] {
        args.value(&format!("{prefix}client-cert-auth"), "true")
            .path(&format!("{prefix}trusted-ca-file"), "pki/etcd/ca.crt")
            .path(&format!("{prefix}cert-file"), "pki/etcd/server.crt")
            .path(&format!("{prefix}key-file"), "pki/etcd/server.key");
    }
    args.list
}

pub(crate) fn api_server(cluster: &ClusterLayout) -> Vec<String> {
    let mut args = Args::new(cluster);
    if cluster.has_node() {
        args.path("kubelet-certificate-authority", "pki/ca.crt")
            .path("kubelet-client-certificate", "pki/apiserver-kubelet-client.crt")
            .path("kubelet-client-key", "pki/apiserver-kubelet-client.key")
            .value("kubelet-preferred-address-types", "InternalIP")
            .value("allow-privileged", "true");
    } else {
        // Endpoints of the Service `kubernetes` cannot be loopback addresses, and nothing routes to its ClusterIP.
        args.value("endpoint-reconciler-type", "none");
    }
    let address = cluster.address().to_string();
    // Members of either family may ask the machine, which has addresses of both if any cluster has IPv6.
    let is_asked_by_both = cluster.has_node() && cluster.families().has(Family::Ipv6);
    args.value("bind-address", if is_asked_by_both { "::" } else { &address })
        .value("advertise-address", &address)
        .value("secure-port", &cluster.record.ports.api.to_string())
        .path("tls-cert-file", "pki/apiserver.crt")
        .path("tls-private-key-file", "pki/apiserver.key")
        .path("client-ca-file", "pki/ca.crt")
        .value("etcd-servers", &cluster.etcd_url())
        .path("etcd-cafile", "pki/etcd/ca.crt")
        .path("etcd-certfile", "pki/etcd/client.crt")
        .path("etcd-keyfile", "pki/etcd/client.key")
        .value("authorization-mode", "Node,RBAC")
        .value("enable-admission-plugins", "NodeRestriction")
        .value("service-cluster-ip-range", &list(&cluster.services()))
        .value("service-account-issuer", "https://kubernetes.default.svc.cluster.local")
        .path("service-account-key-file", "pki/sa.pub")
        .path("service-account-signing-key-file", "pki/sa.key")
        .path("audit-policy-file", "audit-policy.yaml")
        .path("audit-log-path", "logs/audit.log")
        // Megabytes; at the default of 100 it would be rotated under a benchmark that counts.
        .value("audit-log-maxsize", "2000");
    args.list
}

pub(crate) fn controller_manager(cluster: &ClusterLayout) -> Vec<String> {
    let mut args = Args::new(cluster);
    for flag in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
        args.path(flag, "controller-manager.kubeconfig");
    }
    if cluster.has_node() {
        let pods = cluster.pods();
        args.value("allocate-node-cidrs", "true").value("cluster-cidr", &list(&pods));
        // Virtual Nodes take a part, too. The node's own Pods have addresses of all of it, since nothing else uses any.
        for (family, pods) in cluster.families().list().iter().zip(&pods) {
            let flag = format!("node-cidr-mask-size-{family}").to_lowercase();
            args.value(&flag, &(pods.bits() + NODE_BITS).to_string());
        }
    }
    args.value("controllers", "*")
        .value("use-service-account-credentials", "true")
        .path("service-account-private-key-file", "pki/sa.key")
        .path("root-ca-file", "pki/ca.crt")
        .path("cluster-signing-cert-file", "pki/ca.crt")
        .path("cluster-signing-key-file", "pki/ca.key")
        .value("cluster-name", cluster.name())
        .value("leader-elect", "false")
        // Its metrics are not used, and one port fewer can conflict.
        .value("secure-port", "0")
        // The defaults of 20 and 30 would make tests that delete many Namespaces wait for it.
        .value("kube-api-qps", "200")
        .value("kube-api-burst", "400");
    args.list
}

pub(crate) fn scheduler(cluster: &ClusterLayout) -> Vec<String> {
    let mut args = Args::new(cluster);
    for flag in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
        args.path(flag, "scheduler.kubeconfig");
    }
    args.value("leader-elect", "false").value("secure-port", "0");
    args.list
}

fn api_server_names(cluster: &ClusterLayout) -> Vec<String> {
    let names = [
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    // The first ClusterIP is the API server's.
    let service = cluster.services().first().map(|services| services.address(1));
    let addresses = cluster.machine_addresses().into_iter().chain(service);
    names.map(str::to_owned).into_iter().chain(addresses.map(|address| address.to_string())).collect()
}

fn audit_policy(cluster: &ClusterLayout) -> std::path::PathBuf {
    cluster.dir().join("audit-policy.yaml")
}

struct Args<'a> {
    cluster: &'a ClusterLayout,
    list: Vec<String>,
}

impl<'a> Args<'a> {
    fn new(cluster: &'a ClusterLayout) -> Self {
        Self { cluster, list: Vec::new() }
    }

    fn value(&mut self, flag: &str, value: &str) -> &mut Self {
        self.list.push(format!("--{flag}={value}"));
        self
    }

    /// A file in the cluster's directory.
    fn path(&mut self, flag: &str, path: &str) -> &mut Self {
        let path = self.cluster.dir().join(path);
        self.value(flag, &path.to_string_lossy())
    }
}
