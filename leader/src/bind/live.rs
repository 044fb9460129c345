//! Whether a refusal stands: what it misses may come right after the request, or be there already where a watch is behind.

use std::time::Duration;

use api::{
    bind::{export::APIServiceExportRequest, grant::APIS_MAX, label, offer::APIServiceExportTemplate},
    view::Meta,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kit::write::{Error, Writer};
use kube::{Resource, ResourceExt, core::ObjectMeta};

use serde::de::DeserializeOwned;

use super::{
    key::Key,
    knowledge::Knowledge,
    known::{Known, granted_templates},
    lean::{Bounded, Lean, Unread, Written},
};

/// For how long what is asked for may come later than the request.
const PATIENCE: Duration = Duration::from_secs(3);

/// For how long a watch may be behind. Not longer: what does not decode is there and never known.
const BEHIND: Duration = Duration::from_secs(60);

/// How soon it is looked again.
pub(super) const SOON: Duration = Duration::from_millis(500);

/// How long ago it was made.
pub(super) fn age(of: &ObjectMeta, now: Timestamp) -> Duration {
    let since = of.creation_timestamp.as_ref().map(|made| now.duration_since(made.0));
    since.and_then(|since| Duration::try_from(since).ok()).unwrap_or_default()
}

/// For how long what has ended stays yet; nothing where its time is over.
pub(super) fn left(ended: Timestamp, stays: Duration, now: Timestamp) -> Option<Duration> {
    let since = Duration::try_from(now.duration_since(ended)).unwrap_or_default();
    stays.checked_sub(since).filter(|left| !left.is_zero())
}

/// When to look again before it is refused what is this old; nothing if the refusal stands. `behind` asks the API server.
pub(super) async fn looks_again(
    age: Duration,
    behind: impl Future<Output = Result<bool, Error>>,
) -> Result<Option<Duration>, Error> {
    if let Some(left) = PATIENCE.checked_sub(age).filter(|left| !left.is_zero()) {
        return Ok(Some(left));
    }
    Ok((age < BEHIND && behind.await?).then_some(SOON))
}

/// The object as it is known, or, where it was left out and there is room for it by now, as it is there: the watch tells of it again only
/// when it has changed.
pub(super) async fn looked_at<K>(
    key: &Key,
    knowledge: &Knowledge,
    writer: &Writer,
    all: fn(&Known) -> &Bounded<K>,
) -> Result<Option<K>, Error>
where
    K: Written + Clone + DeserializeOwned + 'static,
{
    let (known, is_next) = knowledge.known.with(|known| {
        let all = all(known);
        (all.named(&key.pair()).cloned(), all.has_room_for(key))
    });
    if known.is_some() || !is_next {
        return Ok(known);
    }
    let metadata = ObjectMeta {
        name: Some(key.name.clone()),
        namespace: Some(key.cluster_namespace.clone()),
        ..ObjectMeta::default()
    };
    let named = Lean::<K> { metadata, object: Err(Unread::TooMany(0)), bytes: 0 };
    match writer.read(&named).await {
        Ok(there) => Ok(there.object.ok()),
        Err(Error::Gone) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the API server has another version of the object than the one that is known, or one at all if none is. What has not
/// these labels is not there: the watch does not select it.
pub(super) async fn is_newer<K>(
    writer: &Writer,
    name: &str,
    labels: &[(&str, &str)],
    known: Option<&ObjectMeta>,
) -> Result<bool, Error>
where
    K: Resource<DynamicType = ()> + 'static,
{
    let is_selected = |there: &Meta<K>| {
        labels.iter().all(|&(key, value)| there.labels().get(key).is_some_and(|has| has == value))
    };
    let there = match writer.read(&Meta::<K>::named(name)).await {
        Ok(there) => Some(there).filter(is_selected).and_then(|there| there.resource_version()),
        Err(Error::Gone) => None,
        Err(error) => return Err(error),
    };
    Ok(there.as_ref() != known.and_then(|known| known.resource_version.as_ref()))
}

/// Whether the consumer's grants, a template or an API of the request are other than known.
pub(super) async fn is_behind(
    request: &APIServiceExportRequest,
    knowledge: &Knowledge,
    writer: &Writer,
) -> Result<bool, Error> {
    // One that has too many APIs is refused for that, whatever there is of them.
    if request.spec.resources.len() > APIS_MAX {
        return Ok(false);
    }
    let meta = |of: &dyn Fn(&Known) -> Option<&ObjectMeta>| knowledge.known.with(|known| of(known).cloned());
    let contract = Key::of(request).cluster_namespace;
    let place = meta(&|known| known.contract(&contract).map(Resource::meta));
    if is_newer::<Namespace>(writer, &contract, &[(label::BIND, label::CONTRACT)], place.as_ref()).await? {
        return Ok(true);
    }
    let templates = knowledge.known.with(|known| known.contract(&contract).map(granted_templates));
    for name in templates.unwrap_or_default() {
        let template = meta(&|known| known.template(&name).map(Resource::meta));
        if is_newer::<APIServiceExportTemplate>(writer, &name, &[], template.as_ref()).await? {
            return Ok(true);
        }
    }
    for name in request.spec.resources.iter().map(api::bind::resource::Resource::name) {
        let crd = meta(&|known| known.crd(&name).map(Resource::meta));
        let labels = &[(label::EXPORTED, "true")];
        if is_newer::<CustomResourceDefinition>(writer, &name, labels, crd.as_ref()).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn after(seconds: u64, behind: bool) -> Option<Duration> {
        looks_again(Duration::from_secs(seconds), async { Ok(behind) }).await.unwrap()
    }

    #[test]
    fn what_has_ended_stays_until_its_time_is_over() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let left = |now| left(at(1000), Duration::from_secs(600), at(now));
        assert_eq!((left(1000), left(1599)), (Some(Duration::from_secs(600)), Some(Duration::from_secs(1))));
        assert_eq!((left(1600), left(9000)), (None, None));
        assert_eq!(left(900), Some(Duration::from_secs(600)), "our clock is behind");
    }

    #[tokio::test]
    async fn a_refusal_waits_for_what_comes_late_and_for_a_watch_that_is_behind() {
        assert_eq!(after(1, false).await, Some(Duration::from_secs(2)));
        assert_eq!(after(3, true).await, Some(SOON));
        assert_eq!(after(3, false).await, None);
        assert_eq!(after(60, true).await, None);
    }
}
