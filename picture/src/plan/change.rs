//! The change to plan: ServiceExports and Services as they shall be, and exports that shall end; and why an API server would refuse it.

use std::collections::BTreeSet;

use api::{
    ServiceName,
    family::{IPV4, IPV6},
    label,
    mcs::{ClientIpConfig, ServicePort, SessionAffinityConfig},
    name::{is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name},
    port,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use rules::view::{Export, Service, ServiceSpec};
use serde::Serialize;

use super::{held::Cluster, target_ports::TargetPorts};

/// A change of one object.
#[derive(Clone, Debug)]
pub enum Change {
    /// This ServiceExport is applied.
    Export(Export),
    /// This Service is applied.
    Service(Service),
    /// The Service of this name, which is applied too, leads to these ports of its Pods.
    TargetPorts(TargetPorts),
    /// The ServiceExport of this name is deleted.
    Unexport(ServiceName),
}

/// A change that the API server would refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Kind and name.
    pub object: String,
    /// Why.
    pub message: String,
}

impl Change {
    /// Name of the Service that it is about.
    pub fn service(&self) -> ServiceName {
        let of = |namespace: Option<String>, name| ServiceName::new(namespace.unwrap_or_default(), name);
        match self {
            Self::Export(export) => of(export.namespace(), export.name_any()),
            Self::Service(service) => of(service.namespace(), service.name_any()),
            Self::TargetPorts(ports) => ports.service(),
            Self::Unexport(service) => service.clone(),
        }
    }

    fn object(&self) -> String {
        let kind =
            if matches!(self, Self::Service(_) | Self::TargetPorts(_)) { "Service" } else { "ServiceExport" };
        format!("{kind} {}", self.service())
    }

    /// Reports whether the EndpointSlices of the Service will change in a way that is not known: Kubernetes writes them for its selector and ports.
    pub(super) fn unsettles(&self, cluster: &Cluster) -> bool {
        let there = cluster.service(&self.service());
        let applied = match self {
            Self::Service(applied) => applied,
            Self::TargetPorts(applied) => {
                let selects = there.is_some_and(|there| !there.spec.never.selector.is_empty());
                let before = cluster.target_ports(&self.service());
                return selects && before.is_none_or(|before| !before.is_same(applied));
            }
            Self::Export(_) | Self::Unexport(_) => return false,
        };
        let selector = |service: &Service| service.spec.never.selector.clone();
        let before = there.map(selector).unwrap_or_default();
        if before.is_empty() && selector(applied).is_empty() {
            return false;
        }
        let ports = |service: &Service| -> BTreeSet<_> {
            let of = |one: &ServicePort| {
                let name = one.name.clone().unwrap_or_default();
                (name, one.port, port::protocol(one.protocol.as_deref()).to_owned())
            };
            service.spec.ports.iter().map(of).collect()
        };
        there.is_none_or(|there| before != selector(applied) || ports(there) != ports(applied))
    }

    /// Makes the change in what is known of the cluster, or says why its API server would refuse it.
    pub(super) fn apply(&self, cluster: &mut Cluster, now: Timestamp) -> Result<(), Refused> {
        let refused = |message: String| Refused { object: self.object(), message };
        let service = self.service();
        let namespace = &service.namespace;
        let is_new = match self {
            Self::Export(_) => cluster.export(&service).is_none(),
            Self::Service(_) => cluster.service(&service).is_none(),
            Self::TargetPorts(_) | Self::Unexport(_) => false,
        };
        match cluster.namespace(namespace) {
            Ok(None) => return Err(refused(format!("namespaces {namespace:?} not found"))),
            Ok(Some(found)) if is_new && found.metadata.deletion_timestamp.is_some() => {
                let why = "unable to create new content in namespace";
                return Err(refused(format!("{why} {namespace} because it is being terminated")));
            }
            _ => {}
        }
        let created = Some(Time(Timestamp::from_second(now.as_second()).unwrap_or(now)));
        match self {
            Self::Export(export) => {
                if let Some(why) = refused_export(export, cluster, &service) {
                    return Err(refused(why));
                }
                let mut export = export.clone();
                let there = cluster.export(&service);
                export.metadata.creation_timestamp =
                    there.map_or(created, |there| there.metadata.creation_timestamp.clone());
                export.status = there.map(|there| there.status.clone()).unwrap_or_default();
                put(&mut cluster.exports, export);
            }
            Self::Service(applied) => {
                let there = cluster.service(&service);
                if let Some(why) = refused_service(applied, there) {
                    return Err(refused(why));
                }
                let families = cluster.families.as_deref().unwrap_or_default();
                let spec = defaulted(&applied.spec, there.map(|there| &there.spec), families);
                let mut applied = applied.clone();
                applied.spec = spec;
                put(&mut cluster.services, applied);
            }
            Self::TargetPorts(ports) => put(&mut cluster.target_ports, ports.clone()),
            Self::Unexport(_) => {
                if cluster.exports.is_ok() && cluster.export(&service).is_none() {
                    return Err(refused("it does not exist".to_owned()));
                }
                let is_it = |export: &Export| {
                    export.namespace().as_ref() == Some(&service.namespace)
                        && export.name_any() == service.name
                };
                if let Ok(exports) = &mut cluster.exports {
                    exports.retain(|export| !is_it(export));
                }
            }
        }
        Ok(())
    }
}

fn put<K: kube::Resource>(all: &mut crate::gap::Seen<Vec<K>>, object: K) {
    let key = |object: &K| (object.meta().namespace.clone(), object.meta().name.clone());
    if let Ok(all) = all {
        all.retain(|there| key(there) != key(&object));
        all.push(object);
    }
}

/// Returns why policy `freeport-exports` or the CRD refuses a ServiceExport, in their words.
fn refused_export(export: &Export, cluster: &Cluster, service: &ServiceName) -> Option<String> {
    if !is_dns_subdomain(&service.name) {
        return Some(format!("metadata.name: Invalid value: {:?}: must be a DNS subdomain", service.name));
    }
    let about = format!("ServiceExport {service}");
    let spec = match &export.spec.0 {
        Ok(spec) => spec,
        Err(why) => return Some(why.clone()),
    };
    let is_new = cluster.export(service).is_none_or(|there| there.spec != export.spec);
    if is_new && cluster.is_excluded(&service.namespace) {
        return Some(format!(
            "{about} is refused: the administrator excluded Namespace {} from exporting, by its label {}: \"{}\"",
            service.namespace,
            label::EXPORT,
            label::FALSE
        ));
    }
    let annotations = spec.exported_annotations.keys().map(|key| key.to_lowercase());
    let mut keys = spec.exported_labels.keys().cloned().chain(annotations);
    if let Some(odd) = keys.find(|key| !is_qualified_name(key)) {
        let is_no_key = "in exportedLabels or exportedAnnotations is no key that an object could have";
        return Some(format!("{about}: \"{odd}\" {is_no_key}"));
    }
    let odd = spec.exported_labels.values().find(|value| !is_label_value(value))?;
    Some(format!("{about}: \"{odd}\" in exportedLabels is no value that a label could have"))
}

/// Returns why an API server refuses a Service. It knows common mistakes alone.
fn refused_service(service: &Service, there: Option<&Service>) -> Option<String> {
    let name = service.name_any();
    if !is_dns_label(&name) {
        return Some(format!("metadata.name: Invalid value: {name:?}: must be a DNS label"));
    }
    let spec = &service.spec;
    let is_name = spec.type_.as_deref() == Some("ExternalName");
    if spec.ports.is_empty() && !spec.is_headless() && !is_name {
        return Some("spec.ports: Required value".to_owned());
    }
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for one in &spec.ports {
        let word = one.name.as_deref().unwrap_or_default();
        if word.is_empty() && spec.ports.len() > 1 {
            return Some("spec.ports: Required value: of several ports each has a name".to_owned());
        }
        if !names.insert(word) {
            return Some(format!("spec.ports: Duplicate value: {word:?}"));
        }
        if !numbers.insert((one.port, port::protocol(one.protocol.as_deref()))) {
            return Some(format!("spec.ports: Duplicate value: {}", one.port));
        }
        if !(1..=65535).contains(&one.port) {
            return Some(format!("spec.ports: Invalid value: {}: must be between 1 and 65535", one.port));
        }
    }
    let there =
        there.map(|there| &there.spec).filter(|there| there.type_.as_deref() != Some("ExternalName"))?;
    let says = |spec: &ServiceSpec| spec.cluster_ip.clone().filter(|ip| !ip.is_empty());
    let (now, before) = (says(spec)?, says(there)?);
    let is_changed = now != before && !is_name;
    is_changed.then(|| format!("spec.clusterIPs[0]: Invalid value: [{now:?}]: may not change once set"))
}

/// The Service as the API server keeps it. What a file does not say has its default; addresses and their families stay.
fn defaulted(applied: &ServiceSpec, there: Option<&ServiceSpec>, families: &[String]) -> ServiceSpec {
    let mut spec = applied.clone();
    let or = |value: &mut Option<String>, default: &str| {
        value.get_or_insert_with(|| default.to_owned());
    };
    or(&mut spec.type_, "ClusterIP");
    or(&mut spec.session_affinity, "None");
    spec.ports.iter_mut().for_each(|one: &mut ServicePort| or(&mut one.protocol, "TCP"));
    if spec.session_affinity.as_deref() == Some("ClientIP") && spec.session_affinity_config.is_none() {
        let client_ip = Some(ClientIpConfig { timeout_seconds: Some(10_800) });
        spec.session_affinity_config = Some(SessionAffinityConfig { client_ip });
    }
    if spec.type_.as_deref() == Some("ExternalName") {
        return spec;
    }
    or(&mut spec.internal_traffic_policy, "Cluster");
    if spec.cluster_ip.is_none() {
        spec.cluster_ip = spec.cluster_ips.first().cloned();
    }
    if let (None, Some(there)) = (&spec.cluster_ip, there) {
        (spec.cluster_ip, spec.cluster_ips) = (there.cluster_ip.clone(), there.cluster_ips.clone());
    }
    if spec.ip_families.is_empty() {
        spec.ip_families = there.map(|there| there.ip_families.clone()).unwrap_or_default();
    }
    let wants_both = spec.ip_family_policy.as_deref().is_some_and(|policy| policy != "SingleStack");
    let all = if spec.is_headless() && spec.never.selector.is_empty() && spec.ip_family_policy.is_none() {
        // A headless Service without a selector has both wherever it is.
        let first = families.first().map_or(IPV4, String::as_str);
        let second = if first == IPV4 { IPV6 } else { IPV4 };
        vec![first.to_owned(), second.to_owned()]
    } else if wants_both {
        families.to_vec()
    } else {
        families.iter().take(1).cloned().collect()
    };
    if spec.ip_families.is_empty() || wants_both {
        let more: Vec<_> = all.into_iter().filter(|family| !spec.ip_families.contains(family)).collect();
        spec.ip_families.extend(more);
    }
    spec
}
