//! Ports of Pods that a Service leads to. No other cluster sees them, and Kubernetes writes EndpointSlices by them.

use std::collections::BTreeSet;

use api::{ServiceName, port::protocol, view::unlabelled};
use k8s_openapi::{api::core::v1::Service, apimachinery::pkg::util::intstr::IntOrString};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

/// Fields of a Service that decide on the ports of its EndpointSlices.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Service)]
pub struct TargetPorts {
    /// Namespace and name.
    #[serde(deserialize_with = "unlabelled")]
    pub metadata: ObjectMeta,
    /// The part of its spec.
    #[serde(default)]
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    ports: Vec<Port>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    name: Option<String>,
    protocol: Option<String>,
    port: i32,
    target_port: Option<IntOrString>,
}

impl TargetPorts {
    /// Namespace and name of the Service.
    pub(super) fn service(&self) -> ServiceName {
        ServiceName::new(self.namespace().unwrap_or_default(), self.name_any())
    }

    /// Reports whether the endpoints of both have the same ports.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.ports() == other.ports()
    }

    fn ports(&self) -> BTreeSet<(&str, &str, String)> {
        let of = |port: &'_ Port| match &port.target_port {
            None | Some(IntOrString::Int(0)) => port.port.to_string(),
            Some(IntOrString::Int(number)) => number.to_string(),
            Some(IntOrString::String(name)) => name.clone(),
        };
        let all = self.spec.ports.iter();
        all.map(|port| {
            (port.name.as_deref().unwrap_or_default(), protocol(port.protocol.as_deref()), of(port))
        })
        .collect()
    }
}
