//! Defaults of Services: ports, IP families, cluster IPs.

use serde_json::{Value, json};

use super::default;
use crate::api::refusal::Cause;

/// Cluster IPs of a cluster: 10.`range`.0.0/16 and fd00:10:`range`::/112.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    range: u8,
    /// Number of those given so far.
    given: u16,
}

impl Addresses {
    pub(crate) fn new(range: u8) -> Self {
        Self { range, given: 0 }
    }

    /// The ranges, as a ServiceCIDR has them.
    pub(crate) fn ranges(self, dual: bool) -> Value {
        let Self { range, .. } = self;
        let ipv4 = format!("10.{range}.0.0/16");
        if dual { json!([ipv4, format!("fd00:10:{range}::/112")]) } else { json!([ipv4]) }
    }

    fn next(&mut self, is_ipv6: bool) -> Value {
        self.given += 1;
        let Self { range, given } = *self;
        let [high, low] = given.to_be_bytes();
        match is_ipv6 {
            true => json!(format!("fd00:10:{range}::{given:x}")),
            false => json!(format!("10.{range}.{high}.{low}")),
        }
    }
}

/// Sets the defaults of a Service, which was `old`.
pub(super) fn set(
    new: &mut Value,
    old: Option<&Value>,
    addresses: &mut Addresses,
    dual: bool,
) -> Result<(), Cause> {
    let spec = &mut new["spec"];
    default(spec, "type", json!("ClusterIP"));
    set_affinity(spec);
    if spec["type"] == "ExternalName" {
        new["status"] = json!({"loadBalancer": {}});
        return Ok(());
    }
    default(spec, "internalTrafficPolicy", json!("Cluster"));
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        default(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        default(port, "targetPort", number);
    }
    if let Some(old) = old {
        keep_addresses(spec, &old["spec"])?;
    }
    set_families(spec, dual)?;
    set_addresses(spec, addresses);
    default(new, "status", json!({"loadBalancer": {}}));
    Ok(())
}

fn set_affinity(spec: &mut Value) {
    default(spec, "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == "None" {
        spec.as_object_mut().map(|spec| spec.remove("sessionAffinityConfig"));
    } else {
        default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
    }
}

fn keep_addresses(spec: &mut Value, old: &Value) -> Result<(), Cause> {
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !old[key].is_null() {
            default(spec, key, old[key].clone());
        }
    }
    if old["clusterIP"].is_string() && spec["clusterIP"] != old["clusterIP"] {
        let why = "may not change once set";
        return Err(Cause::invalid("spec.clusterIPs[0]", &spec["clusterIP"], why));
    }
    Ok(())
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None"
}

fn set_families(spec: &mut Value, dual: bool) -> Result<(), Cause> {
    // Its endpoints may be of any family, whatever the cluster has.
    let is_open = is_headless(spec) && spec["selector"].is_null();
    default(spec, "ipFamilyPolicy", json!(if is_open { "RequireDualStack" } else { "SingleStack" }));
    let has_both = (dual && spec["ipFamilyPolicy"] != "SingleStack") || is_open;
    default(spec, "ipFamilies", if has_both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    let has_ipv6 =
        spec["ipFamilies"].as_array().is_some_and(|families| families.iter().any(|family| family == "IPv6"));
    if has_ipv6 && !dual && !is_open {
        return Err(Cause::invalid("spec.ipFamilies[0]", &json!("IPv6"), "not configured on this cluster"));
    }
    Ok(())
}

fn set_addresses(spec: &mut Value, addresses: &mut Addresses) {
    if is_headless(spec) {
        spec["clusterIPs"] = json!(["None"]);
        return;
    }
    let mut all = spec["clusterIPs"].as_array().cloned().unwrap_or_default();
    if let (true, Some(first)) = (all.is_empty(), spec["clusterIP"].as_str().filter(|ip| !ip.is_empty())) {
        all.push(json!(first));
    }
    let families = spec["ipFamilies"].as_array().cloned().unwrap_or_default();
    all.truncate(families.len());
    for family in families.iter().skip(all.len()) {
        all.push(addresses.next(family == "IPv6"));
    }
    spec["clusterIP"] = all.first().cloned().unwrap_or_default();
    spec["clusterIPs"] = Value::Array(all);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_defaults(spec: &Value, dual: bool) -> Value {
        let mut service = json!({"spec": spec});
        set(&mut service, None, &mut Addresses::new(96), dual).unwrap();
        service["spec"].clone()
    }

    #[test]
    fn a_service_has_an_address_per_family() {
        let spec = with_defaults(&json!({"ports": [{"port": 80}]}), false);
        assert_eq!(spec["clusterIPs"], json!(["10.96.0.1"]));
        assert_eq!(spec["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
        let spec = with_defaults(&json!({"ipFamilyPolicy": "PreferDualStack"}), true);
        assert_eq!(spec["clusterIPs"], json!(["10.96.0.1", "fd00:10:96::2"]));
        assert_eq!(with_defaults(&json!({"clusterIP": "None"}), false)["clusterIPs"], json!(["None"]));
    }

    #[test]
    fn a_cluster_ip_does_not_change() {
        let old = json!({"spec": with_defaults(&json!({}), false)});
        let mut new = json!({"spec": {"clusterIP": "10.96.0.9"}});
        assert!(set(&mut new, Some(&old), &mut Addresses::new(96), false).is_err());
        let mut new = json!({"spec": {}});
        set(&mut new, Some(&old), &mut Addresses::new(96), false).unwrap();
        assert_eq!(new["spec"]["clusterIP"], "10.96.0.1");
    }

    #[test]
    fn ipv6_needs_a_cluster_with_both_families() {
        let mut service = json!({"spec": {"ipFamilies": ["IPv6"]}});
        assert!(set(&mut service, None, &mut Addresses::new(96), false).is_err());
    }
}
