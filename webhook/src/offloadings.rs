//! The NamespaceOffloadings of this cluster: watched, so that a Pod waits for nobody.

use std::time::{Duration, Instant};

use api::{
    offload::namespace::{NAME, NamespaceOffloading, NamespaceOffloadingSpec},
    view::{Lenient, lean},
};
use kit::{
    failure::{Failure, classify},
    index::Shared,
    metrics::Metrics,
    objects::Objects,
    watch::{Source, Watches},
};
use kube::{Api, Client, Resource, api::ObjectMeta, runtime::watcher};
use serde::Deserialize;

/// For the answer about one NamespaceOffloading: the API server that asks us waits for three seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// What of a NamespaceOffloading counts for Pods. One without a spec has the defaults.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = NamespaceOffloading)]
pub(crate) struct Offloading {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    /// Where Pods may run.
    #[serde(default)]
    pub(crate) spec: Lenient<NamespaceOffloadingSpec>,
}

impl Offloading {
    /// Whether it is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// What is known of them. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Offloadings {
    client: Client,
    watches: Watches,
    known: Shared<Objects<Offloading>>,
}

impl Offloadings {
    /// Nothing is known before the watch that comes with it is polled. Every `relist` all are listed again: one that a restore of this
    /// cluster has lost may stay known otherwise.
    pub(crate) fn watch(
        client: Client,
        metrics: Metrics,
        relist: Duration,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let offloadings = Self { client, watches: Watches::default(), known: Shared::default() };
        let known = offloadings.known.clone();
        let watch = offloadings.watches.watch(
            Api::<Offloading>::all(offloadings.client.clone()),
            watcher::Config::default().fields(&format!("metadata.name={NAME}")),
            Source { cluster: "local", kind: "NamespaceOffloading" },
            metrics,
            move |change| known.with(|known| known.change(change)),
        );
        let again = offloadings.watches.clone();
        let list = async move {
            loop {
                tokio::time::sleep(relist).await;
                again.list_again();
            }
        };
        let all = async move {
            tokio::select! {
                () = watch => {}
                () = list => {}
            }
        };
        (offloadings, all)
    }

    /// Whether all of them were seen.
    pub(crate) fn are_listed(&self) -> bool {
        self.watches.are_listed()
    }

    /// Why changes of them are not seen any more, if the API server refuses to tell.
    pub(crate) fn refused(&self) -> Option<Failure> {
        let troubles = self.watches.troubles(Instant::now()).into_iter();
        troubles.map(|trouble| trouble.failure).find(Failure::is_refusal)
    }

    /// Why nobody can say what they hold: the API server refuses to tell. That it does not serve the kind is
    /// no such reason: then there are none.
    pub(crate) fn unknown(&self) -> Option<Failure> {
        self.refused().filter(|failure| *failure != Failure::KindMissing)
    }

    /// The NamespaceOffloading of a Namespace; none if there is none, [`Failure::KindMissing`] if there can be none. One that we do not
    /// know of may have been made just now, and one that is not told of may be another by now: the API server is asked, once.
    pub(crate) async fn of(&self, namespace: &str) -> Result<Option<Offloading>, Failure> {
        let name = (namespace.to_owned(), NAME.to_owned());
        let (known, lists) = self.known.with(|known| (known.named(&name).cloned(), known.lists()));
        if known.is_some() && self.refused().is_none() {
            return Ok(known);
        }
        let api = Api::<Offloading>::namespaced(self.client.clone(), namespace);
        let found = tokio::time::timeout(PATIENCE, api.get(NAME)).await;
        let found = match found.map_err(|_| Failure::Unreachable("no answer in time"))? {
            Ok(found) => Some(found),
            Err(error) => match (classify(&error), error) {
                (failure @ Failure::KindMissing, _) => return Err(failure),
                (_, kube::Error::Api(status)) if status.is_not_found() => None,
                (failure, _) => return Err(failure),
            },
        };
        if let Some(found) = found.clone() {
            self.known.with(|known| known.answered(found, lists));
        }
        Ok(found)
    }

    /// Those that are known from tests.
    #[cfg(test)]
    pub(crate) fn know(&self, offloading: serde_json::Value) {
        let offloading = serde_json::from_value(offloading).unwrap();
        self.known.with(|known| known.change(kit::objects::Change::Apply(offloading)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: &[&str] =
        &["podOffloadingStrategy", "clusterSelector", "nodeSelectorTerms", "matchExpressions", "values"];

    proptest! {
        #[test]
        fn a1_no_offloading_stops_a_list(odd in odd::anything(FIELDS)) {
            odd::everywhere::<Offloading>(&odd).unwrap();
        }
    }
}
