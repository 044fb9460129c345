//! Whose a record is: the tuple in its spec, with which its name and labels have to agree. Pure.

use api::{
    ServiceName,
    antrea::Members,
    label, name,
    resource_export::{ENDPOINTS, ResourceExportSpec, SERVICE},
    resource_import::Objection,
};
use kube::api::ObjectMeta;

/// Which cluster offers which Service by this record, if spec, name and labels agree on that.
pub(crate) fn identity(
    metadata: &ObjectMeta,
    kind: &str,
    spec: &ResourceExportSpec,
    antrea: &Members,
) -> Result<(String, ServiceName), Objection> {
    let (cluster, service) = tuple(spec)?;
    let record = metadata.name.as_deref().unwrap_or_default();
    let is_named_so = match kind {
        SERVICE => record == antrea.service_export(&cluster, &service),
        ENDPOINTS => record == antrea.endpoints_export(&cluster, &service),
        _ => name::is_slice_export(record, &cluster, &service),
    };
    if !is_named_so {
        let message =
            format!("the name of this record is not the one for Service {service} of cluster {cluster}");
        return Err(Objection::new("ForeignTuple", message));
    }
    check_labels(metadata, kind, &cluster, &service)?;
    Ok((cluster, service))
}

fn tuple(spec: &ResourceExportSpec) -> Result<(String, ServiceName), Objection> {
    let invalid = |message: String| Objection::new("InvalidTuple", message);
    let cluster = spec.cluster_id.clone().unwrap_or_default();
    name::check_cluster_id(&cluster).map_err(|error| invalid(format!("spec.clusterID: {error}")))?;
    let service =
        ServiceName::new(spec.namespace.clone().unwrap_or_default(), spec.name.clone().unwrap_or_default());
    for (field, value) in [("namespace", &service.namespace), ("name", &service.name)] {
        if !name::is_dns_label(value) {
            return Err(invalid(format!("spec.{field} {value:?} is not a DNS label")));
        }
    }
    Ok((cluster, service))
}

/// Members select records by these labels, so a record that is labelled as another's would be read as another's.
fn check_labels(
    metadata: &ObjectMeta,
    kind: &str,
    cluster: &str,
    service: &ServiceName,
) -> Result<(), Objection> {
    let labels = metadata.labels.clone().unwrap_or_default();
    let want = [
        (label::SOURCE_CLUSTER_ID, cluster),
        (label::SOURCE_NAMESPACE, &service.namespace),
        (label::SOURCE_NAME, &service.name),
        (label::SOURCE_KIND, kind),
    ];
    match want.into_iter().find(|(key, value)| labels.get(*key).map(String::as_str) != Some(*value)) {
        Some((key, value)) => {
            Err(Objection::new("ForeignTuple", format!("label {key} must be {value:?}, as in spec")))
        }
        None => Ok(()),
    }
}
