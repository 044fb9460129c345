//! What makes a cluster's machine its node: command lines and configuration of containerd, kubelet and kube-proxy.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs, io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::{
    Families, Family,
    cluster_layout::ClusterLayout,
    containerd, kubeconfig,
    layout::Layout,
    subnet::{self, Subnet},
};

/// Port of the kubelet's health check.
pub(crate) const KUBELET_HEALTH_PORT: u16 = 10248;
/// Port of kube-proxy's health check.
pub(crate) const PROXY_HEALTH_PORT: u16 = 10256;

/// Writes the node's configuration into the cluster's directory.
pub(crate) fn prepare(cluster: &ClusterLayout) -> io::Result<()> {
    let cni = dir(cluster).join("cni");
    Layout::make_private_dir(&cni)?;
    let write = |name: &str, content: Value| fs::write(dir(cluster).join(name), content.to_string());
    write("cni/fleet.conflist", cni_config(&cluster.pods(), cluster.families()))?;
    write("kubelet.json", kubelet_config(cluster))?;
    fs::write(dir(cluster).join("containerd.toml"), containerd::config(&cni)?)?;
    // No server resolves names outside of the clusters.
    fs::write(dir(cluster).join("resolv.conf"), "")?;
    ["kubelet", "kube-proxy"].into_iter().try_for_each(|component| kubeconfig::write_for(cluster, component))
}

fn dir(cluster: &ClusterLayout) -> PathBuf {
    cluster.dir().join("node")
}

pub(crate) fn containerd_args(cluster: &ClusterLayout) -> Vec<String> {
    vec![flag("config", dir(cluster).join("containerd.toml").display())]
}

pub(crate) fn kubelet(cluster: &ClusterLayout) -> Vec<String> {
    let node_ips: Vec<_> = cluster.node_addresses().iter().map(ToString::to_string).collect();
    vec![
        flag("config", dir(cluster).join("kubelet.json").display()),
        flag("kubeconfig", cluster.dir().join("kubelet.kubeconfig").display()),
        flag("hostname-override", cluster.name()),
        flag("node-ip", node_ips.join(",")),
    ]
}

pub(crate) fn kube_proxy(cluster: &ClusterLayout) -> Vec<String> {
    vec![
        flag("kubeconfig", cluster.dir().join("kube-proxy.kubeconfig").display()),
        flag("hostname-override", cluster.name()),
        flag("cluster-cidr", subnet::list(&cluster.pods())),
        flag("proxy-mode", "nftables"),
        flag("healthz-bind-address", SocketAddr::new(cluster.address(), PROXY_HEALTH_PORT)),
        // Settings of this machine as a whole, not of a network namespace.
        flag("conntrack-max-per-core", 0),
        flag("conntrack-tcp-timeout-established", 0),
        flag("conntrack-tcp-timeout-close-wait", 0),
    ]
}

fn flag(name: &str, value: impl Display) -> String {
    format!("--{name}={value}")
}

/// The addresses of the cluster's DNS server: by convention the tenth ClusterIP, of each family.
pub(crate) fn dns_addresses(cluster: &ClusterLayout) -> Vec<IpAddr> {
    cluster.services().iter().map(|services| services.address(10)).collect()
}

fn kubelet_config(cluster: &ClusterLayout) -> Value {
    let file = |name: &str| cluster.pki(name).display().to_string();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": cluster.address(),
        "healthzBindAddress": cluster.address(),
        "healthzPort": KUBELET_HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": file("kubelet.crt"),
        "tlsPrivateKeyFile": file("kubelet.key"),
        "containerRuntimeEndpoint": format!("unix://{}", containerd::SOCKET),
        "clusterDomain": "cluster.local",
        "clusterDNS": dns_addresses(cluster),
        // So soon a Pod has a change of a Secret that it mounts; where nobody says otherwise it is a minute and a half.
        "syncFrequency": "5s",
        "resolvConf": dir(cluster).join("resolv.conf"),
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        // Groups per quality of service need controllers that not every machine has.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        // The disk and the memory are this machine's, which may be nearly full without any harm, and images that
        // are removed cannot be pulled again.
        "evictionHard": {
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
    })
}

/// Each Pod has a link of its own to the node, which routes between them: on a common bridge, answers of a Service's
/// Pod to its neighbour would not pass through the node's address translation, unless a kernel module is loaded.
fn cni_config(pods: &[Subnet], families: Families) -> Value {
    let ranges: Vec<_> = pods.iter().map(|pods| json!([{"subnet": pods.to_string()}])).collect();
    let routes: Vec<_> = pods.iter().map(|pods| json!({"dst": pods.everywhere().to_string()})).collect();
    let link = json!({
        "type": "ptp",
        "ipMasq": false,
        "ipam": {"type": "host-local", "ranges": ranges, "routes": routes},
    });
    let mut plugins =
        if families.has(Family::Ipv6) { without_duplicate_address_detection().to_vec() } else { Vec::new() };
    plugins.push(link);
    json!({"cniVersion": "0.4.0", "name": "fleet", "plugins": plugins})
}

/// Turns off duplicate address detection, which would delay a Pod by a second or two. Settings are set after a plugin that makes an
/// interface, and before the one that waits.
fn without_duplicate_address_detection() -> [Value; 2] {
    let settings = ["all", "default"].map(|which| (format!("net.ipv6.conf.{which}.accept_dad"), "0"));
    [json!({"type": "loopback"}), json!({"type": "tuning", "sysctl": BTreeMap::from(settings)})]
}
