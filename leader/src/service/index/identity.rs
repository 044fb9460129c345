//! Whose a record is: the tuple in its spec, with which its name and labels have to agree. Pure.

use api::{
    ServiceName,
    antrea::Members,
    label, name,
    resource_export::{ENDPOINTS, SERVICE},
    resource_import::Objection,
};
use kube::api::ObjectMeta;

use super::record::RecordSpec;

/// Which cluster offers which Service by this record, if spec, name and labels agree on that.
pub(crate) fn identity(
    metadata: &ObjectMeta,
    kind: &str,
    spec: &RecordSpec,
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

/// Whose the record of a Service is, whatever its spec says: by its labels if they give its name, else by its name alone.
pub(crate) fn owner(metadata: &ObjectMeta, antrea: &Members) -> Option<(String, ServiceName)> {
    let record = metadata.name.as_deref()?;
    let is_named_so =
        |cluster: &str, service: &ServiceName| antrea.service_export(cluster, service) == record;
    let label = |key: &str| metadata.labels.as_ref()?.get(key).cloned();
    let labelled = || {
        let cluster = label(label::SOURCE_CLUSTER_ID)?;
        let service = ServiceName::new(label(label::SOURCE_NAMESPACE)?, label(label::SOURCE_NAME)?);
        let is_tuple = name::check_cluster_id(&cluster).is_ok()
            && name::is_dns_label(&service.namespace)
            && name::is_dns_label(&service.name);
        (is_tuple && is_named_so(&cluster, &service)).then_some((cluster, service))
    };
    let named = || {
        // Names with dashes everywhere, as Antrea's members give them, do not split back.
        let is_unique = antrea.is_empty() || record.ends_with(".service");
        name::of_service_export(record)
            .filter(|(cluster, service)| is_unique && is_named_so(cluster, service))
    };
    labelled().or_else(named)
}

fn tuple(spec: &RecordSpec) -> Result<(String, ServiceName), Objection> {
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
