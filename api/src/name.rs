//! Names derived from identities, and the limits they have to keep.
//!
//! Identity is always the tuple in a spec; a name is only how the tuple's object is found. The dashed form is Antrea's.
//! Dashes also occur inside Namespaces and cluster IDs, so two tuples could share a dashed name: it is used only where
//! it splits back uniquely, and dots, which neither Namespace nor Service names hold, everywhere else.

use sha2::{Digest, Sha256};

use crate::{ServiceName, label};

/// Longest cluster ID, in bytes: it is a label value.
pub const CLUSTER_ID_MAX: usize = 63;

/// ConfigMap that Kubernetes keeps in each Namespace: the authorities of its API server, in key `ca.crt`.
pub const ROOT_CA: &str = "kube-root-ca.crt";

/// Longest name of a Service, in bytes.
const SERVICE_MAX: usize = 63;

/// Name of the ResourceExport with a cluster's Service: `<id>-<ns>-<name>-service` or `<id>.<ns>.<name>.service`.
pub fn service_export(cluster: &str, service: &ServiceName) -> String {
    let ServiceName { namespace, name } = service;
    if cluster.contains('-') || namespace.contains('-') {
        format!("{cluster}.{namespace}.{name}.service")
    } else {
        format!("{cluster}-{namespace}-{name}-service")
    }
}

/// The cluster and the Service whose record [`service_export`] calls `record`. There is but one way to split such a name.
pub fn of_service_export(record: &str) -> Option<(String, ServiceName)> {
    let (cluster, namespace, name) = match record.strip_suffix(".service") {
        Some(parts) => {
            let mut parts = parts.rsplitn(3, '.');
            let (name, namespace) = (parts.next()?, parts.next()?);
            (parts.next()?, namespace, name)
        }
        None => {
            let mut parts = record.strip_suffix("-service")?.splitn(3, '-');
            (parts.next()?, parts.next()?, parts.next()?)
        }
    };
    let service = ServiceName::new(namespace, name);
    let is_tuple = check_cluster_id(cluster).is_ok() && is_dns_label(namespace) && is_dns_label(name);
    (is_tuple && service_export(cluster, &service) == record).then(|| (cluster.to_owned(), service))
}

/// Name of the ResourceImport of a merged Service: `<ns>-<name>-service` or `<ns>.<name>.service`.
pub fn service_import(service: &ServiceName) -> String {
    let ServiceName { namespace, name } = service;
    if namespace.contains('-') {
        format!("{namespace}.{name}.service")
    } else {
        format!("{namespace}-{name}-service")
    }
}

/// Name of the ResourceExport with all endpoints of a cluster's Service (Antrea): [`service_export`] for kind `Endpoints`.
pub fn endpoints_export(cluster: &str, service: &ServiceName) -> String {
    for_endpoints(&service_export(cluster, service))
}

/// Name of the ResourceImport of all endpoints of a merged Service (Antrea): [`service_import`] for kind `Endpoints`.
pub fn endpoints_import(service: &ServiceName) -> String {
    for_endpoints(&service_import(service))
}

/// The Service that a ResourceImport of this name merges: the inverse of [`service_import`].
pub fn of_service_import(name: &str) -> Option<ServiceName> {
    let split = |between: char| name.strip_suffix("service")?.strip_suffix(between)?.split_once(between);
    let (namespace, service) = split('.').or_else(|| split('-'))?;
    let service = ServiceName::new(namespace, service);
    let is_label = is_dns_label(&service.namespace) && is_dns_label(&service.name);
    (is_label && service_import(&service) == name).then_some(service)
}

/// The Service whose endpoints a ResourceImport of this name has: the inverse of [`endpoints_import`].
pub fn of_endpoints_import(name: &str) -> Option<ServiceName> {
    of_service_import(&format!("{}service", name.strip_suffix("endpoints")?))
}

/// The name of a Service's record or import ends with its kind.
fn for_endpoints(name: &str) -> String {
    format!("{}endpoints", name.strip_suffix("service").unwrap_or(name))
}

/// Name of the ResourceExport with one EndpointSlice: `<id>.<ns>.<name>.slice.<hash of the source slice's name>`.
pub fn slice_export(cluster: &str, service: &ServiceName, source_slice: &str) -> String {
    let ServiceName { namespace, name } = service;
    format!("{cluster}.{namespace}.{name}.slice.{}", hash(source_slice))
}

/// Whether `record` is a name [`slice_export`] gives for some slice of this Service.
pub fn is_slice_export(record: &str, cluster: &str, service: &ServiceName) -> bool {
    let ServiceName { namespace, name } = service;
    record.strip_prefix(&format!("{cluster}.{namespace}.{name}.slice.")).is_some_and(is_hash)
}

/// Name of the Service that realises an import: `antrea-mc-<name>`, or, if that is too long for a Service,
/// `antrea-mc-<beginning of name>-<hash of name>`.
pub fn imported_service(name: &str) -> String {
    let whole = format!("{}{name}", label::IMPORTED_PREFIX);
    if whole.len() <= SERVICE_MAX {
        return whole;
    }
    let beginning = whole.floor_char_boundary(SERVICE_MAX - 1 - HASH_LEN);
    format!("{}-{}", &whole[..beginning], hash(name))
}

/// Name of the EndpointSlice an importer makes of the slice record `record`.
///
/// The record's name is unique in the ClusterSet, so one source slice stays one imported slice (rule of
/// `reference/mcs.md` 1.6, item 9).
pub fn imported_slice(service: &str, record: &str) -> String {
    format!("{}-{}", imported_service(service), hash(record))
}

/// The import that a Service of this name realises. Where the name was shortened only the label says it: `labelled`.
pub fn import_of<'a>(service: &'a str, labelled: Option<&'a str>) -> Option<&'a str> {
    labelled
        .filter(|of| imported_service(of) == service)
        .or_else(|| service.strip_prefix(label::IMPORTED_PREFIX))
}

/// The Service that realises the import which an EndpointSlice of this name is of, if [`imported_slice`] gives such names.
pub fn service_of_slice(slice: &str) -> Option<&str> {
    let (service, hash) = slice.rsplit_once('-')?;
    (service.starts_with(label::IMPORTED_PREFIX) && is_hash(hash)).then_some(service)
}

/// Whether a Service, or core Endpoints, of this name realise the import that they are labelled with. A copy that somebody made of them, which
/// has their labels, does not.
pub fn realises(name: &str, labelled: &str) -> bool {
    imported_service(labelled) == name
}

/// Name of a member's MemberClusterAnnounce (Antrea).
pub fn announce(cluster: &str) -> String {
    format!("member-announce-from-{cluster}")
}

/// Name of the Lease of a Common Area's leader.
pub const LEADER_LEASE: &str = label::LEADER;

/// Name of the Lease, in the Namespace of the daemons, that says which of several replicas of a daemon is active.
pub fn active_lease(daemon: &str) -> String {
    format!("{daemon}-active")
}

/// PriorityLevelConfiguration of the requests of all members of all Common Areas.
pub const MEMBERS_LEVEL: &str = "freeport-members";

/// Name of a member's Lease in the Common Area.
pub fn member_lease(cluster: &str) -> String {
    format!("{}-{cluster}", label::MEMBER)
}

/// ID of the member whose Lease has this name.
pub fn member_of_lease(lease: &str) -> Option<&str> {
    let cluster = lease.strip_prefix(label::MEMBER)?.strip_prefix('-')?;
    check_cluster_id(cluster).is_ok().then_some(cluster)
}

/// Why a cluster ID cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterIdError {
    /// Nothing there.
    #[error("a cluster ID cannot be empty")]
    Empty,
    /// Longer than a label value.
    #[error("cluster ID {0:?} is longer than {CLUSTER_ID_MAX} characters")]
    TooLong(String),
    /// Not one or two DNS labels.
    #[error(
        "cluster ID {0:?} must be a DNS label (lower case letters, digits, '-'), or two of them with a dot between"
    )]
    NotDns(String),
}

/// Checks a cluster ID: one DNS label or two with a dot between (rule R-1), at most 63 characters.
pub fn check_cluster_id(id: &str) -> Result<(), ClusterIdError> {
    if id.is_empty() {
        return Err(ClusterIdError::Empty);
    }
    if id.len() > CLUSTER_ID_MAX {
        return Err(ClusterIdError::TooLong(id.into()));
    }
    if id.split('.').count() > 2 || !id.split('.').all(is_dns_label) {
        return Err(ClusterIdError::NotDns(id.into()));
    }
    Ok(())
}

/// Whether `text` is an RFC 1123 label: what a Namespace's name is.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_between_dots(text)
}

/// Whether `text` can be the name of an object of most kinds.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_between_dots)
}

fn is_between_dots(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether `text` is what Kubernetes takes for an application protocol, or for the key of a label or an annotation: a name of at
/// most 63 letters, digits, `-`, `_`, `.`, perhaps after a DNS prefix and a slash.
pub fn is_qualified_name(text: &str) -> bool {
    let name = |name: &str| !name.is_empty() && is_label_value(name);
    match text.split_once('/') {
        Some((prefix, rest)) => prefix.len() <= 253 && prefix.split('.').all(is_dns_label) && name(rest),
        None => name(text),
    }
}

/// Whether `text` can be the value of a label: nothing, or at most 63 letters, digits, `-`, `_`, `.`, with a letter or digit at
/// both ends.
pub fn is_label_value(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

const HASH_LEN: usize = 16;

fn is_hash(text: &str) -> bool {
    text.len() == HASH_LEN && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// 64 bits of SHA-256 in hex: enough that two slices of one Service do not meet by accident.
pub fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(HASH_LEN / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
