//! IP families, as Kubernetes spells them.

/// IPv4.
pub const IPV4: &str = "IPv4";
/// IPv6.
pub const IPV6: &str = "IPv6";

/// The family of an address.
pub fn of(address: &str) -> &'static str {
    if address.contains(':') { IPV6 } else { IPV4 }
}

/// Those of `wanted` that are among `there` too, in the order of `wanted`.
pub fn common(wanted: &[String], there: &[String]) -> Vec<String> {
    wanted.iter().filter(|family| there.contains(family)).cloned().collect()
}

/// What is said of families; a record of a time or of an implementation that knew only one says nothing.
pub fn said(families: &[String]) -> Vec<String> {
    if families.is_empty() { vec![IPV4.to_owned()] } else { families.to_vec() }
}
