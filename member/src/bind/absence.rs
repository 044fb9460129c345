//! Whether it counts that something of our cluster is not there although nobody saw it going.
//!
//! What an API server that was restored from a backup does not have, nobody took away. That it was restored shows [`Home`] where we were
//! there, and Lease `kube-bind/kube-bind` where we were not: nobody made copies since it was renewed last. The rules are pure; before
//! anything is deleted for an absence, the API server is asked once more.

use std::{sync::Arc, time::Duration};

use api::view::Meta;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Namespace,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kit::{
    failure::{Failure, classify},
    watch::Guard,
    write::Error,
};
use kube::{Api, Client, Resource, ResourceExt};

use crate::home::{Home, Lost};

/// By how much the provider's clock may be ahead of ours.
const SKEW: Duration = Duration::from_secs(300);

/// Times of which an absence tells nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// Our cluster was restored from a backup of the beginning of it, at its end.
    pub(crate) restored: Option<Lost>,
    /// No konnector ran here, as far as our cluster knows.
    pub(crate) unserved: Option<Lost>,
}

impl Gaps {
    /// Whether what this was made for at the provider is gone if it is not here, and was not seen since we began. Also what is older than a
    /// backup may have been made anew for something that the backup lacks.
    pub(crate) fn are_over(&self, made: &ObjectMeta) -> bool {
        let Some(Time(made)) = made.creation_timestamp else { return self.are_none() };
        let is_older = self
            .restored
            .is_some_and(|lost| made <= lost.until().checked_add(SKEW).unwrap_or(Timestamp::MAX));
        !is_older && !self.unserved.is_some_and(|gap| gap.may_have(made, SKEW))
    }

    fn are_none(&self) -> bool {
        self.restored.is_none() && self.unserved.is_none()
    }
}

/// Finds out whether something of our cluster is gone. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Absence {
    pub(crate) gaps: Gaps,
    guard: Arc<dyn Guard>,
}

impl Absence {
    /// No konnector ran here between `signed` and `now`; nobody knows of one where that is nothing.
    pub(crate) fn new(home: &Home, signed: Option<Timestamp>, now: Timestamp) -> Self {
        // API servers note ages in whole seconds: of that second are copies of the konnector that signed.
        let after = signed.and_then(|signed| signed.checked_add(Duration::from_secs(1)).ok());
        let unserved = Some(Lost::between(after.unwrap_or(Timestamp::UNIX_EPOCH), now));
        Self { gaps: Gaps { restored: home.lost(), unserved }, guard: home.guard() }
    }

    /// Knows whether our cluster still holds what it held.
    pub(crate) fn guard(&self) -> Arc<dyn Guard> {
        self.guard.clone()
    }

    /// Whether the object of that name is gone, by the API server that held it: not if it was restored, nor if it does not serve the kind.
    pub(crate) async fn is_certain<K: Resource>(
        &self,
        api: &Api<Meta<K>>,
        name: &str,
    ) -> Result<bool, Error> {
        Ok(is_gone(api, name).await? && self.guard.still_holds().await?)
    }
}

/// Whether there is no object of that name. A kind that is not served says nothing of its objects.
pub(crate) async fn is_gone<K: Resource>(api: &Api<Meta<K>>, name: &str) -> Result<bool, Error> {
    let Err(error) = api.get(name).await else { return Ok(false) };
    match (&error, classify(&error)) {
        (_, failure @ Failure::KindMissing) => Err(Error::Refused(failure.to_string())),
        (kube::Error::Api(status), _) if status.code == 404 => Ok(true),
        _ => Err(error.into()),
    }
}

/// Whether objects of this Namespace of our cluster may be new: it is there, and does not go.
pub(crate) async fn takes_more(client: &Client, namespace: &str) -> Result<bool, Error> {
    let namespaces = Api::<Meta<Namespace>>::all(client.clone());
    match namespaces.get(namespace).await {
        Ok(namespace) => Ok(namespace.meta().deletion_timestamp.is_none()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// uid of our cluster, as it is now: another one may have come under its address.
pub(crate) async fn cluster_uid(client: &Client) -> kube::Result<String> {
    let namespaces = Api::<Meta<Namespace>>::all(client.clone());
    Ok(namespaces.get("kube-system").await?.uid().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i8) -> Timestamp {
        format!("2026-11-01T12:{minute:02}:00Z").parse().unwrap()
    }

    fn made(minute: i8) -> ObjectMeta {
        ObjectMeta { creation_timestamp: Some(Time(at(minute))), ..ObjectMeta::default() }
    }

    #[test]
    fn d8_what_a_restored_cluster_does_not_have_is_not_gone() {
        let restored = Gaps { restored: Some(Lost::between(at(10), at(20))), unserved: None };
        let believed = |gaps: &Gaps, minutes: &[i8]| {
            minutes.iter().map(|minute| gaps.are_over(&made(*minute))).collect::<Vec<_>>()
        };
        assert_eq!(believed(&restored, &[5, 15, 20]), [false; 3], "also what is older than the backup (X10)");
        assert_eq!(believed(&restored, &[24, 26]), [false, true], "clocks differ");
        assert!(!restored.are_over(&ObjectMeta::default()), "nobody knows when");
        assert!(Gaps::default().are_over(&ObjectMeta::default()));
    }

    #[test]
    fn d8_what_was_made_while_nobody_made_copies_was_made_by_a_cluster_that_was_restored_since() {
        let gaps = Gaps { restored: None, unserved: Some(Lost::between(at(10), at(20))) };
        let believed = [5, 15, 22, 26].map(|minute| gaps.are_over(&made(minute)));
        assert_eq!(believed, [true, false, false, true], "the provider's clock may be ahead");
    }
}
