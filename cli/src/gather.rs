//! `freeport gather`: writes what a report of a problem needs into one file, a bundle. Changes nothing in the clusters.
//!
//! | module | holds |
//! |---|---|
//! | `kinds` | what is asked for |
//! | `read` | asks one cluster |
//! | `log` | logs and metrics of the daemons |
//! | `keep` | what stays of the answers: pure |
//! | `content` | the files of a bundle, without credentials |
//! | `target` | the file that is written |

mod content;
mod keep;
mod kinds;
mod log;
mod read;
mod target;

use std::{path::PathBuf, pin::pin};

use futures::{StreamExt, future::join_all, poll, stream::FuturesUnordered};
use k8s_openapi::jiff::Timestamp;

use self::{content::Content, read::Asked, target::Target};
use crate::{Error, KubeContext, cluster::Cluster, look::each_once};

/// Options of `freeport gather`.
#[derive(Clone, Debug)]
pub struct GatherOptions {
    /// The file to write.
    pub to: PathBuf,
    /// True if an existing file is replaced.
    pub replace: bool,
    /// The clusters to look at.
    pub contexts: Vec<KubeContext>,
}

/// Result of `freeport gather`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Parts that are missing, and why. Some words are those of API servers.
    pub missing: Vec<String>,
    /// Number of places where something was cut.
    pub cuts: usize,
    /// Number of files in the bundle.
    pub files: usize,
    /// Number of clusters of which an object could be read. If there are none, no bundle was written.
    pub seen: usize,
}

/// Looks at all clusters at once and writes the bundle. `say` is told each cluster that is done.
///
/// # Errors
/// [`Error::Kubeconfig`], [`Error::Argument`] if the file exists, [`Error::File`] if it cannot be written.
pub async fn gather(options: &GatherOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<Gathered, Error> {
    let target = Target::new(&options.to, options.replace)?;
    let (clusters, notes) = clusters(&options.contexts).await?;
    for note in notes {
        say(&format!("note: {note}"));
    }
    let names: Vec<_> = clusters.iter().map(|(cluster, _)| cluster.name.as_str()).collect();
    say(&format!("asking {}", names.join(", ")));
    let mut missing = Vec::new();
    let mut asked = ask(&clusters, say).await;
    let seen = asked.iter().filter(|asked| asked.objects() > 0).count();
    for asked in &mut asked {
        missing.append(&mut asked.missing);
    }
    if seen == 0 {
        return Ok(Gathered { missing, cuts: 0, files: 0, seen });
    }
    let taken_at = Timestamp::now();
    logs(&clusters, &mut asked, &mut missing, say).await;
    let content = Content::of(asked, taken_at, &missing);
    let (files, missing, cuts) = Box::pin(content.finished()).await?;
    // From its first poll on, Ctrl-C does not end the program: the file is not left half written under another name.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    let _ = poll!(&mut interrupt);
    target.write(&files, taken_at)?;
    Ok(Gathered { missing, cuts, files: files.len(), seen })
}

/// The clusters, each once, with its Namespace in the kubeconfig; and a sentence on those that are left out.
async fn clusters(contexts: &[KubeContext]) -> Result<(Vec<(Cluster, String)>, Vec<String>), Error> {
    let mut clusters = Vec::new();
    for context in contexts {
        clusters.push((Cluster::open(context).await?, context.namespace()?));
    }
    let uids = join_all(clusters.iter().map(|(cluster, _)| Box::pin(read::uid(cluster)))).await;
    let with_uids = clusters.into_iter().zip(uids).collect();
    let of = |((cluster, _), uid): &((Cluster, String), Option<String>)| (cluster.name.clone(), uid.clone());
    let (once, notes) = each_once(with_uids, of);
    Ok((once.into_iter().map(|(cluster, _)| cluster).collect(), notes))
}

/// Asks the clusters. Returns their answers in the order of the clusters.
async fn ask(clusters: &[(Cluster, String)], say: &mut (dyn FnMut(&str) + Send)) -> Vec<Asked> {
    let one = async |at: usize, (cluster, namespace): &(Cluster, String)| {
        (at, Box::pin(read::read(cluster, namespace)).await)
    };
    let mut all: FuturesUnordered<_> =
        clusters.iter().enumerate().map(|(at, cluster)| Box::pin(one(at, cluster))).collect();
    let mut done = Vec::new();
    while let Some((at, asked)) = all.next().await {
        say(&asked.said());
        done.push((at, asked));
    }
    done.sort_by_key(|(at, _)| *at);
    let mut all: Vec<_> = done.into_iter().map(|(_, asked)| asked).collect();
    let own = clusters.iter().zip(&mut all);
    join_all(own.map(|((cluster, _), asked)| Box::pin(read::read_own(cluster, asked)))).await;
    all
}

/// Logs and metrics of the daemons.
async fn logs(
    clusters: &[(Cluster, String)],
    asked: &mut [Asked],
    missing: &mut Vec<String>,
    say: &mut (dyn FnMut(&str) + Send),
) {
    let all = clusters.iter().zip(&*asked).map(|((cluster, _), asked)| Box::pin(log::read(cluster, asked)));
    let all = join_all(all).await;
    for (asked, (texts, mut lacking)) in asked.iter_mut().zip(all) {
        if !texts.is_empty() {
            say(&format!("{}: {} logs and metrics", asked.seen.context, texts.len()));
        }
        asked.texts = texts;
        missing.append(&mut lacking);
    }
}

#[cfg(test)]
mod tests;
