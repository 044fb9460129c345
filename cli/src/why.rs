//! `freeport why`: looks at several clusters at once and says why one of them cannot use a Service of the others. Writes nothing. What
//! follows from what is seen is decided in [`picture`].

mod look;

use api::ServiceName;
use futures::future::join_all;
use picture::{
    cluster::Cluster as Known,
    why::{Picture, why as walk},
};

use crate::{
    Error, KubeContext,
    cluster::{Cluster, now},
    look::each_once,
};

/// What to look at.
#[derive(Clone, Debug)]
pub struct WhyOptions {
    /// The Service.
    pub service: ServiceName,
    /// Cluster that imports, by ID or context; without it, that of the first context.
    pub from: Option<String>,
    /// The clusters to look at.
    pub contexts: Vec<KubeContext>,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Notes, a line or more for each step, and the verdict. Some words are those of other clusters.
    pub lines: Vec<String>,
    /// Whether something is broken or degraded; none if nothing was found and the importing cluster could not be looked at.
    pub found: Option<bool>,
}

/// Looks at all clusters at once. A cluster that does not answer costs one limit, and is a note.
///
/// # Errors
/// [`Error::Kubeconfig`], and [`Error::Argument`] if nothing is known of the importing cluster.
pub async fn why(options: &WhyOptions) -> Result<Why, Error> {
    let clusters = Cluster::open_all(&options.contexts).await?;
    let looks = clusters.iter().map(|cluster| Box::pin(look::look(cluster, &options.service)));
    let known = join_all(looks).await;
    let now = now(&clusters);
    let uid = |cluster: &Known| (cluster.context.clone(), cluster.uid.clone().ok());
    let (clusters, notes) = each_once(known, uid);
    let mut lines: Vec<_> = notes.iter().map(|note| format!("note: {note}")).collect();
    for cluster in &clusters {
        let gap = cluster.unseen().map(|gap| format!("note: {} was not looked at: {gap}", cluster.context));
        lines.extend(gap);
    }
    if clusters.iter().all(|cluster| cluster.unseen().is_some()) {
        lines.push("no cluster could be looked at".to_owned());
        return Ok(Why { lines, found: None });
    }
    let picture = Picture { service: options.service.clone(), clusters, now };
    let walk = walk(&picture, options.from.as_deref()).map_err(Error::Argument)?;
    lines.extend(walk.text());
    let found = !walk.findings.is_empty();
    Ok(Why { lines, found: (found || !walk.is_unseen).then_some(found) })
}

#[cfg(test)]
mod tests {
    use std::{io::Write, time::Duration};

    use super::*;
    use crate::Login;

    #[tokio::test]
    async fn clusters_that_do_not_answer_are_notes_and_nothing_is_known_then() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let config = "{clusters: [{name: n, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: n, user: {}}], \
                      contexts: [{name: a, context: {cluster: n, user: n}}, {name: b, context: {cluster: n, user: n}}]}";
        file.write_all(config.as_bytes()).unwrap();
        let login = Login { limit: Some(Duration::from_secs(5)), ..Login::default() };
        let of = |name: &str| KubeContext {
            file: Some(file.path().into()),
            name: Some(name.into()),
            login: login.clone(),
            bundle: None,
        };
        let options = WhyOptions {
            service: ServiceName::new("shop", "web"),
            from: None,
            contexts: vec![of("a"), of("b")],
        };
        let Why { lines, found } = why(&options).await.unwrap();
        assert_eq!((found, lines.len()), (None, 3), "{lines:?}");
        for (line, name) in lines.iter().zip(["a", "b"]) {
            assert!(line.starts_with(&format!("note: {name} was not looked at: {name}: cannot ")), "{line}");
        }
    }
}
