//! Real Kubernetes clusters on this machine: per cluster an etcd, a kube-apiserver and a kube-controller-manager, with
//! their own ports, data, CA and logs. Without nodes, Pods never run. With them, each cluster has what looks like a
//! machine of its own (network, mounts, control groups) and on it kube-scheduler, containerd, kubelet, kube-proxy and
//! CoreDNS; Pods of all clusters reach each other.
//!
//! | module | noun |
//! |---|---|
//! | [`Fleet`], [`Options`] | the clusters of one directory: up, open, down, further processes |
//! | [`ClusterSpec`], [`Families`] | a cluster that is wanted, with IPv4, IPv6 or both |
//! | [`Cluster`] | one cluster: address, files, pause and restart |
//! | [`command`] | the command line `fleet up\|install\|load\|down\|status` |
//! | [`cluster_set`] | the clusters as members of one set, by `freeport init` and `join`, with their daemons |
//! | [`agnhost`] | test servers in Pods, which send requests to each other |
//! | [`demo`] | an exported Service, shown to a newcomer |
//! | [`keeper`] | the process that owns all others, so that nothing outlives its owner |
//! | [`program`] | programs of this workspace, built on demand |
//! | [`tools`] | the Kubernetes programs: found, downloaded, or built once by Go |
//! | [`packages`], `installed` | the programs that nodes need besides, from the distribution |
//! | [`Image`], [`images`], `containerd` | container images, built without an engine; those that every node has; their import |
//! | `record`, `layout`, `claim` | the files of a fleet's directory |
//! | `cluster_layout` | a cluster as data: its record, addresses, names and files |
//! | `control_plane`, `node`, `assembly` | from that, files and command lines of each component |
//! | `pki`, `kubeconfig`, `client`, [`ports`] | certificates, credentials, clients, ports |
//! | `cluster::ready`, `start` | starting a cluster, and all of them, until they are usable |
//! | [`dns`] | the cluster's DNS server |
//! | `keeper::machine`, `network`, `subnet`, `cgroup`, `inotify` | what a node runs on |
//! | `started` | with what a process was started |
//!
//! [`Fleet::up`] checks names and the directory, [`tools::provide`] finds or builds the programs, a keeper is launched, each cluster
//! gets files (`assembly::prepare`) and processes (`cluster::ready`), concurrently (`start`), and at last the kubeconfigs are written.
//!
//! With nodes, the keeper runs a *switch* first (a network namespace with a bridge), to which this machine has an
//! interface, and per cluster a *machine*: a process that only holds namespaces, which the cluster's other
//! processes enter when they start. Names and mounts are seen in there alone, so the kernel takes all of it back when
//! the keeper ends, of whatever cause; only control groups have to be removed.

pub mod agnhost;
mod assembly;
mod cgroup;
mod claim;
mod client;
mod cluster;
mod cluster_layout;
pub mod cluster_set;
pub mod command;
mod component;
mod containerd;
mod control_plane;
pub mod demo;
mod disk;
pub mod dns;
mod error;
mod families;
mod fleet;
mod image;
pub mod images;
mod inotify;
mod installed;
pub mod keeper;
mod kubeconfig;
mod layout;
mod log_tail;
mod name;
mod network;
mod node;
pub mod packages;
mod pki;
pub mod ports;
mod process;
pub mod program;
mod record;
mod spec;
mod start;
mod started;
mod status;
mod subnet;
pub mod tools;

pub use cluster::Cluster;
pub use component::Component;
pub use error::Error;
pub use families::{Families, Family};
pub use fleet::{Fleet, Lifetime, Options};
pub use image::Image;
pub use keeper::{Exit, ProcessSpec, ProcessState, Signal, Stage};
pub use process::Process;
pub use spec::ClusterSpec;
