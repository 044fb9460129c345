//! Writes that no test refuses.

use super::Sender::{self, Leader, Member, MemberAway};

const EVENT: &str = "an Event that is refused is logged: it repeats what a condition reports";
const LEASE: &str = "a Lease that is not renewed is reported as that: a replica without it is passive, a member without it is silent";
const TOKEN: &str = "a token that is refused is reported with the credential it is for";
const EVICTION: &str = "sent in the place of a member that is silent for minutes, by the writer that reports refused ResourceImports on the same ClusterSet";
const SAME: &str =
    "sent by the controller and writer of the refused writes of this kind, and reported in the same place";
const OWNERS: &str = "never sent: admission plugin OwnerReferencesPermissionEnforcement asks for it where the leader takes owners off";
const SHARED: &str = "kube-bind's konnector, which has the same role, sends it; the member does not";
const ENDPOINTS: &str = "sent with --endpoints-objects alone, by the writer of EndpointSlices, and reported as EndpointsRefused on the ServiceImport";
const WEBHOOK: &str = "sent where the webhook runs, by a writer that notes refusals; PlacementEnforced reports a configuration that is missing or altered";

/// Who sends it, the resource, the operations, and why no test refuses it.
pub const EXEMPT: &[(Sender, &str, &[&str], &str)] = &[
    (Leader, "events", &["create", "update"], EVENT),
    (Member, "events", &["create", "update"], EVENT),
    (Leader, "leases", &["create", "update"], LEASE),
    (MemberAway, "leases", &["create", "update"], LEASE),
    (Leader, "serviceaccountstoken", &["create"], TOKEN),
    (MemberAway, "serviceaccountstoken", &["create"], TOKEN),
    (Leader, "resourceexports", &["update", "delete"], EVICTION),
    (Leader, "namespacemaps", &["delete"], EVICTION),
    (Leader, "offloadoffers", &["delete"], EVICTION),
    (Leader, "shadowpods", &["delete"], EVICTION),
    (Leader, "clusterreports", &["delete"], EVICTION),
    (Member, "endpoints", &["create", "update", "delete"], ENDPOINTS),
    (Member, "mutatingwebhookconfigurations", &["create", "update"], WEBHOOK),
    (MemberAway, "apiserviceexportrequests", &["create", "update", "delete"], SHARED),
    (Leader, "flowschemas", &["create"], "a contract works without it: the refusal is logged and counted"),
    (Leader, "clusterbindings", &["update"], SAME),
    (Leader, "clusterrolebindings", &["create", "delete"], SAME),
    (Leader, "secrets", &["update"], SAME),
    (Leader, "apiservicenamespaces", &["create"], SAME),
    (Leader, "apiservicenamespaces", &["delete"], OWNERS),
    (Leader, "apiserviceexportrequests", &["update", "delete"], SAME),
    (
        Leader,
        "memberclusterannounces",
        &["update"],
        "sent when a member that runs Antrea leaves, by the writer of the refused ResourceImports",
    ),
];
