//! Our records, and the steps towards those this cluster has to have.

use api::{label, resource_export::ResourceExportSpec, view::Lenient};
use kube::api::ObjectMeta;

use crate::service::index::{known::Known, view::OwnRecord};

/// One step towards the records this cluster has to have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Write it.
    Put {
        /// As the leader has it.
        have: Option<OwnRecord>,
        /// As it has to be.
        want: OwnRecord,
    },
    /// Empty it, then delete it: importers are to see first that it was meant.
    Remove {
        /// As the leader has it.
        have: OwnRecord,
        /// What says that it is going.
        emptied: OwnRecord,
    },
    /// Delete it: that it was meant is seen elsewhere. The Service record says that all is withdrawn; or a finalizer keeps this one
    /// until the leader has seen that it goes.
    Delete {
        /// As the leader has it.
        have: OwnRecord,
    },
}

/// A record of ours, with what `payload` puts into it.
pub(crate) fn record(
    known: &Known,
    kind: &str,
    name: String,
    payload: impl FnOnce(&mut ResourceExportSpec),
) -> OwnRecord {
    let (us, service) = (&known.cluster.us, &known.service);
    let mut spec = ResourceExportSpec {
        cluster_id: Some(us.cluster.clone()),
        namespace: Some(service.namespace.clone()),
        name: Some(service.name.clone()),
        kind: Some(kind.into()),
        ..ResourceExportSpec::default()
    };
    payload(&mut spec);
    let labels = [
        (label::SOURCE_CLUSTER_ID, us.cluster.as_str()),
        (label::SOURCE_NAMESPACE, &service.namespace),
        (label::SOURCE_NAME, &service.name),
        (label::SOURCE_KIND, kind),
    ];
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(us.common_area.clone()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..ObjectMeta::default()
    };
    OwnRecord { metadata, spec: Lenient(Ok(spec)), status: Lenient::default() }
}
