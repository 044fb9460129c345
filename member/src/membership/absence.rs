//! Why the noted ClusterSet is gone: somebody deleted it, or it vanished with its CRD or its Namespace.

use api::{cluster_set::ClusterSet, membership::Membership, view::Meta};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kit::boot::Env;
use kube::{Api, CustomResourceExt, Resource, api::ObjectMeta};
use serde::de::DeserializeOwned;

/// What the absence of the noted ClusterSet means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// Somebody deleted it.
    Decided,
    /// It vanished with something else: what happened to that.
    Vanished(&'static str),
}

/// Reads what the ClusterSet could have vanished with; `None` when the ClusterSet exists after all. A CRD or a Namespace that is
/// older than the ClusterSet and is not being deleted has existed all the time.
pub(super) async fn find_out(env: &Env, noted: &Membership) -> kube::Result<Option<Absence>> {
    let sets = Api::<Meta<ClusterSet>>::namespaced(env.client.clone(), &env.namespace);
    if let Some(set) = read(&sets, &noted.cluster_set).await?
        && set.deletion_timestamp.is_none()
    {
        return Ok(None);
    }
    let crds = Api::<Meta<CustomResourceDefinition>>::all(env.client.clone());
    let namespaces = Api::<Meta<Namespace>>::all(env.client.clone());
    let crd = read(&crds, ClusterSet::crd_name()).await?;
    let namespace = read(&namespaces, &env.namespace).await?;
    Ok(Some(judge(noted, crd.as_ref(), namespace.as_ref())))
}

async fn read<K>(api: &Api<K>, name: &str) -> kube::Result<Option<ObjectMeta>>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    match api.get_opt(name).await {
        // Without its CRD no object exists.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        answer => Ok(answer?.map(|object| object.meta().clone())),
    }
}

fn judge(noted: &Membership, crd: Option<&ObjectMeta>, namespace: Option<&ObjectMeta>) -> Absence {
    let created: Option<Timestamp> = noted.created.parse().ok();
    let stayed = |object: Option<&ObjectMeta>| {
        object.is_some_and(|object| {
            let since = object.creation_timestamp.as_ref().map(|at| at.0);
            object.deletion_timestamp.is_none() && since.zip(created).is_some_and(|(since, set)| since <= set)
        })
    };
    if !stayed(crd) {
        Absence::Vanished("its CRD was deleted or created again")
    } else if !stayed(namespace) {
        Absence::Vanished("its Namespace is being deleted or was created again")
    } else {
        Absence::Decided
    }
}

#[cfg(test)]
mod tests {
    use api::{
        membership::{Via, Wire},
        ranges::Ranges,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn it_is_decided_only_if_everything_it_could_vanish_with_stayed() {
        let noted = Membership {
            cluster_set: "demo".into(),
            created: "2026-11-01T12:00:00Z".into(),
            cluster_id: "east".into(),
            common_area: "clusterset-demo".into(),
            server: String::new(),
            secret: String::new(),
            via: Via::default(),
            wire: Wire::Freeport,
            ranges: Ranges::default(),
        };
        let meta = |created: &str, going: bool| {
            let at = Time(created.parse().unwrap());
            let deletion_timestamp = going.then(|| at.clone());
            ObjectMeta { creation_timestamp: Some(at), deletion_timestamp, ..ObjectMeta::default() }
        };
        let (old, new) = (meta("2026-11-01T12:00:00Z", false), meta("2026-11-01T12:00:01Z", false));
        let going = meta("2026-10-01T00:00:00Z", true);
        assert_eq!(judge(&noted, Some(&old), Some(&old)), Absence::Decided);
        for crd in [None, Some(&new), Some(&going)] {
            assert!(matches!(judge(&noted, crd, Some(&old)), Absence::Vanished(why) if why.contains("CRD")));
            assert!(
                matches!(judge(&noted, Some(&old), crd), Absence::Vanished(why) if why.contains("Namespace"))
            );
        }
        let unread = Membership { created: "?".into(), ..noted };
        assert!(matches!(judge(&unread, Some(&old), Some(&old)), Absence::Vanished(_)));
    }
}
