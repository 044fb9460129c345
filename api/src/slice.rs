//! The EndpointSlice that travels in a ResourceExport of kind `EndpointSlice`.

use k8s_openapi::api::discovery::v1::EndpointConditions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One EndpointSlice of the exporting cluster, without what means nothing elsewhere (nodes, Pods).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlicePayload {
    /// `IPv4` or `IPv6`.
    pub address_type: String,
    /// Ports of every endpoint here.
    #[serde(default)]
    pub ports: Vec<SlicePort>,
    /// The endpoints. An empty list is said on purpose: this slice has none.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
}

/// A port of the endpoints, and the Service port that leads to it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlicePort {
    /// Name of the port in the exporting cluster; absent on an unnamed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Port number on the endpoints.
    pub port: i32,
    /// Port number on the exporting Service: with the protocol it says which port of the merged Service this is
    /// (rules ).
    pub service_port: i32,
    /// Application protocol, as on the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// One endpoint.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Addresses, all of the same endpoint.
    pub addresses: Vec<String>,
    /// Whether it is ready, serving, terminating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<EndpointConditions>,
    /// Host name of the endpoint, for names of single Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Zone it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}
