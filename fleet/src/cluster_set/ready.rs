//! Waiting until the members of a ClusterSet say that they are ready.

use std::{io, net::SocketAddr, time::Duration};

use api::cluster_set::{ClusterSet, READY};
use kube::Api;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use super::{Daemon, Error};
use crate::{Cluster, Fleet, log_tail};

/// A few seconds are the rule; a machine that compiles meanwhile takes its time.
const LIMIT: Duration = Duration::from_secs(120);
/// For one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// How often a wait reports what is missing.
const SAY: Duration = Duration::from_secs(10);

/// Waits until the daemons are ready and the ClusterSet of every member among them has condition `Ready`.
///
/// # Errors
/// [`Error::Ended`], [`Error::NotReady`].
pub async fn ready(fleet: &Fleet, set: &str, daemons: &[Daemon]) -> Result<(), Error> {
    ready_saying(fleet, set, daemons, &mut |_| {}).await
}

/// [`ready`]; `say` gets a line for each member that is ready, and now and then what is missing.
///
/// # Errors
/// Those of [`ready`].
pub async fn ready_saying(
    fleet: &Fleet,
    set: &str,
    daemons: &[Daemon],
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    let begun = Instant::now();
    for cluster in fleet.clusters() {
        let name = cluster.name();
        let sets = Api::<ClusterSet>::namespaced(cluster.client().await?, cli::objects::SYSTEM);
        let daemons: Vec<_> = daemons.iter().filter(|daemon| daemon.cluster == name).collect();
        if daemons.is_empty() {
            continue;
        }
        let mut said = Instant::now();
        while let Some((message, of)) = missing(&sets, set, &daemons).await {
            let log = check(fleet, cluster, &daemons, of).await?;
            if begun.elapsed() > LIMIT {
                let tail = log_tail::of_file(&log);
                return Err(Error::NotReady { cluster: name.to_owned(), message, log, tail });
            }
            if said.elapsed() > SAY {
                say(&format!("{name}: waiting: {message}"));
                said = Instant::now();
            }
            sleep(Duration::from_millis(100)).await;
        }
        say(&format!("{name}: ready"));
    }
    Ok(())
}

/// What keeps a cluster from being ready, and the daemon in whose log the reason may be.
async fn missing<'a>(
    sets: &Api<ClusterSet>,
    set: &str,
    daemons: &[&'a Daemon],
) -> Option<(String, Option<&'a Daemon>)> {
    for daemon in daemons {
        let up = timeout(REQUEST_LIMIT, is_up(daemon.listen)).await;
        if !matches!(up, Ok(Ok(true))) {
            let message =
                format!("http://{}/readyz of {} does not answer ok", daemon.listen, daemon.spec.name);
            return Some((message, Some(daemon)));
        }
    }
    if !daemons.iter().any(|daemon| daemon.is_member) {
        return None;
    }
    let message = match timeout(REQUEST_LIMIT, sets.get_opt(set)).await {
        Ok(Ok(found)) => {
            let conditions = found.and_then(|set| set.status).map(|s| s.conditions).unwrap_or_default();
            match conditions.into_iter().find(|c| c.type_.as_deref() == Some(READY)) {
                Some(ready) if ready.status.as_deref() == Some("True") => return None,
                Some(ready) => ready.message.unwrap_or_default(),
                None => "its ClusterSet has no condition Ready yet".to_owned(),
            }
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its API server does not answer".to_owned(),
    };
    // The member, which comes after the leader.
    Some((message, daemons.last().copied()))
}

/// The log of `of`, provided that no daemon of the cluster has ended.
async fn check(
    fleet: &Fleet,
    cluster: &Cluster,
    daemons: &[&Daemon],
    of: Option<&Daemon>,
) -> Result<std::path::PathBuf, Error> {
    let mut log = cluster.dir();
    for daemon in daemons {
        let Some(process) = fleet.process(&daemon.spec.name).await? else { continue };
        if let Some(exit) = process.exit().await? {
            let (log, tail) = (process.log().to_owned(), log_tail::of_file(process.log()));
            return Err(Error::Ended { name: process.name().to_owned(), exit, log, tail });
        }
        if of.is_some_and(|of| of.spec.name == daemon.spec.name) {
            log = process.log().to_owned();
        }
    }
    Ok(log)
}

/// Whether the daemon answers that it is ready.
async fn is_up(listen: SocketAddr) -> io::Result<bool> {
    let mut connection = TcpStream::connect(listen).await?;
    connection.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}
