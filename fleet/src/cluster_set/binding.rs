//! An API of one cluster of a fleet, used in another: provider and consumer by the code users run, with their daemons. They need no
//! ClusterSet.

use std::path::{Path, PathBuf};

use api::label;
use cli::{ApiServiceOptions, Daemons, Halves, OfferOptions, ProvideOptions, Run};

use super::{Daemon, DaemonImage, Error, build_daemons, context, deployed, load_daemons};
use crate::{Cluster, Fleet};

/// Tells a member to take part in binding.
const BIND: &str = "FREEPORT_BIND";

/// What is used where.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// The cluster whose API it is.
    pub provider: &'a Cluster,
    /// The cluster that uses it.
    pub consumer: &'a Cluster,
    /// The API, as `PLURAL.GROUP`; its CRD is there.
    pub api: &'a str,
    /// Name of the template and of the binding.
    pub name: &'a str,
}

/// Runs `freeport bind provide`, `offer` and `apiservice`, and the daemons, in nodes or beside them. Safe to run again.
///
/// # Errors
/// See [`Error`].
pub async fn bind(
    fleet: &Fleet,
    binding: Binding<'_>,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    let Binding { provider, consumer, api, name } = binding;
    let address = provider.server_for(consumer).ok_or_else(|| Error::NoCommonFamily {
        member: consumer.name().to_owned(),
        of_member: consumer.families(),
        leader: provider.name().to_owned(),
        of_leader: provider.families(),
    })?;
    let has_nodes = provider.has_node() && consumer.has_node();
    let image = if has_nodes { Some(load_daemons(fleet, DaemonImage::OfContent).await?) } else { None };
    let run = |cluster: &Cluster| {
        let outside = || Daemons::Outside(cluster.dir().join("daemons"));
        let daemons = image
            .clone()
            .map_or_else(outside, |image| Daemons::Inside { image: Some(image), replicas: None });
        Run { daemons, wait: has_nodes, ..deployed() }
    };

    let options = ProvideOptions {
        cluster: context(fleet, provider.name()),
        address: Some(address),
        isolation: None,
        scope: None,
        run: run(provider),
    };
    let provided = cli::provide(&options, say).await?;
    let told: Vec<_> = provided.told.into_iter().collect();
    start(fleet, provider, label::LEADER, provided.kubeconfig, &told).await?;
    let options = OfferOptions {
        cluster: context(fleet, provider.name()),
        template: name.to_owned(),
        resources: vec![api.to_owned()],
        collection: None,
        isolation: None,
        run: run(provider),
    };
    cli::offer(&options, say).await?;
    let options = ApiServiceOptions {
        name: name.to_owned(),
        halves: Halves::Both {
            provider: context(fleet, provider.name()),
            template: name.to_owned(),
            consumer: context(fleet, consumer.name()),
        },
        agree: Vec::new(),
        take_over: false,
        run: run(consumer),
    };
    let kubeconfig = cli::bind_apiservice(&options, say).await?;
    start(fleet, consumer, label::MEMBER, kubeconfig, &[(BIND.to_owned(), label::TRUE.to_owned())]).await
}

/// Runs a daemon beside its cluster, if it has a kubeconfig for that.
async fn start(
    fleet: &Fleet,
    cluster: &Cluster,
    kind: &str,
    kubeconfig: Option<PathBuf>,
    told: &[(String, String)],
) -> Result<(), Error> {
    let Some(kubeconfig) = kubeconfig else { return Ok(()) };
    let (leader, member) = build_daemons().await?;
    let program: &Path = if kind == label::LEADER { &leader } else { &member };
    let mut daemon = Daemon::plan(fleet, kind, cluster.name(), program, &kubeconfig).await?;
    daemon.spec.env.extend(told.iter().cloned());
    daemon.ensure(fleet).await.map(drop)
}
