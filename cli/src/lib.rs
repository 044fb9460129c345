//! `freeport`: the command line that sets up ClusterSets.
//!
//! | module | holds |
//! |---|---|
//! | [`init()`], [`join()`], [`rejoin()`], [`leave()`], [`status()`], [`dns()`] | the commands, as functions for whoever sets clusters up from Rust |
//! | [`accept()`], [`use_peer()`], [`offload_namespaces()`], [`unoffload_namespaces()`], [`offload_status()`], [`offload_maps()`] | those of offloading |
//! | [`provide()`], [`offer()`], [`offers()`], [`bind_apiservice()`], [`remove()`] | those of API binding |
//! | [`args`] | the command line |
//! | [`objects`] | all that is installed, built by pure functions |
//! | [`manifests`] | the same as files, for people who apply them themselves |
//! | `cluster` | reaching a cluster through a kubeconfig |
//! | `deletion` | what keeps an object that is being deleted |
//! | [`get()`] | what several clusters export and import |
//! | [`why()`] | why a Service of another cluster cannot be used |
//! | [`check()`] | what is wrong with clusters and the set that they are |
//! | [`gather()`] | what a report of a problem needs, in one file |
//! | [`version()`] | versions of this program and of clusters |
//! | [`Bundle`] | what was gathered, which answers in the place of clusters |
//! | `redact` | cuts credentials |
//! | [`export()`], [`unexport`] | exports Services, and ends exports |
//! | [`plan()`] | what a change of exports does in the whole set |
//! | `look` | reads parts of a cluster, gaps included |
//! | `outside` | whether a daemon runs outside of its cluster |
//! | `schema` | version of JSON that commands print |
//! | `part` | one part of what an API server is asked for, or why it is not there |
//! | `precondition` | what must hold before anything is changed |
//! | `printable` | words of other clusters on a terminal |
//! | `probe` | whether the member connects to endpoints of other clusters |
//! | `proxy` | whether a proxy is used |
//! | `refused` | what is refused to the member, which ends waiting for it |
//! | `ranges` | which addresses the endpoints of the member may have |
//! | `holder` | which cluster an ID was given to |
//! | `image` | which image a Deployment gets |
//! | `install` | applies objects and says what changed |
//! | `eraser` | deletes and changes objects and says so |
//! | `bind` | API binding: its commands |
//! | `offload` | offloading of Namespaces: its installation and its commands |
//! | `view` | objects as commands read them |
//! | `wait` | waits until a daemon is ready |
//! | `rollout` | how far a Deployment is rolled out |
//! | `warning` | what may be a mistake, and does not stop a command |
//! | `run` | where the daemons run, which parts are done |
//! | `kubeconfig` | kubeconfigs for daemons that run outside |
//!
//! A command checks, connects, checks what the clusters hold, and only then changes anything.

pub mod args;
mod bind;
mod bundle;
mod check;
mod cluster;
mod deletion;
mod dns;
mod dynamic;
mod eraser;
mod error;
mod export;
mod gather;
mod get;
mod holder;
mod image;
mod init;
mod install;
mod join;
mod kubeconfig;
mod leave;
mod look;
pub mod manifests;
pub mod objects;
mod offload;
mod outside;
mod part;
mod plan;
mod precondition;
mod printable;
mod probe;
mod proxy;
mod ranges;
mod redact;
mod refused;
mod rejoin;
mod rollout;
mod run;
mod schema;
pub mod status;
mod version;
mod view;
mod wait;
mod warning;
mod why;

use std::path::PathBuf;

pub use crate::{
    bind::{
        ApiServiceOptions, Halves, Offer, OfferOptions, ProvideOptions, Provided, RemoveOptions,
        bind_apiservice, offer, offer_text, offers, provide, remove,
    },
    bundle::Bundle,
    check::{CheckOptions, Checked, Form as CheckForm, check},
    cluster::{KubeContext, Login},
    dns::{DnsOptions, Namespaced, dns},
    error::Error,
    export::{DryRun, ExportOptions, UnexportOptions, export, unexport},
    gather::{GatherOptions, Gathered, gather},
    get::{ClusterRow, GetOptions, Listed, Listing, Rows, get, names as listed_names, text as listed_text},
    init::{InitOptions, init},
    join::{JoinOptions, join},
    leave::{Departure, LeaveOptions, leave},
    offload::{
        AcceptOptions, OffloadOptions, Offloading, UnoffloadOptions, UseOptions, accept,
        maps::{MapState, Mapping, OffloadMaps, maps_text, offload_maps},
        offload_namespaces,
        status::{
            OffloadReport, OffloadStatusOptions, Offloaded, Peer, Said, Twin, VirtualNode, offload_status,
            text as offload_text,
        },
        unoffload_namespaces, use_peer,
    },
    plan::{PlanFrom, PlanOptions, Predicted, look_for_plan, plan},
    probe::Probe,
    ranges::{AddressRanges, Cidrs},
    rejoin::{RejoinOptions, rejoin},
    run::{Daemons, Part, Run},
    status::{StatusOptions, status},
    version::{ClusterVersions, Crd, Daemon, Features, VersionOptions, Versions, version},
    why::{Why, WhyOptions, why},
};

/// What was installed. Kubeconfigs are for daemons that run outside of the cluster; none in a dry run, or where the daemon is not wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// For `freeport-leader`.
    pub leader: Option<PathBuf>,
    /// For `freeport-member`.
    pub member: Option<PathBuf>,
    /// For `freeport-webhook`.
    pub webhook: Option<PathBuf>,
    /// Where the API server asks `freeport-webhook` outside of the cluster, if that was said.
    pub webhook_url: Option<String>,
    /// Whether the member takes part in offloading.
    pub offloads: bool,
}
