//! Which addresses a Pod of another cluster may have. Whoever sends to the Pod, here, sends there.

use std::net::IpAddr;

use ipnet::IpNet;

/// Why an address cannot be a Pod's, in words.
///
/// `services` are the ranges of this cluster's Services: who claims one of them would get the traffic of somebody else.
pub fn check(address: &str, services: &[IpNet]) -> Result<(), String> {
    let Ok(ip) = address.parse::<IpAddr>() else { return Err(format!("{address:?} is no IP address")) };
    // An IPv4 address in the clothes of IPv6 is sent to as the IPv4 one.
    let plain = ip.to_canonical();
    let what = match plain {
        _ if plain.is_loopback() => "a loopback address",
        _ if plain.is_unspecified() => "the unspecified address",
        _ if plain.is_multicast() => "a multicast address",
        IpAddr::V4(ip) if ip.is_link_local() || ip.is_broadcast() => "an address of one link",
        IpAddr::V6(ip) if ip.is_unicast_link_local() => "an address of one link",
        _ if services.iter().any(|range| range.contains(&plain)) => "in the range of this cluster's Services",
        _ if plain != ip => "an IPv4 address in IPv6 form",
        _ => return Ok(()),
    };
    Err(format!("{address} is {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_pod_is_nobody_elses() {
        let services = ["10.96.0.0/12".parse().unwrap(), "fd00:96::/112".parse().unwrap()];
        for right in ["10.1.0.7", "192.0.2.1", "fd00:1::7", "2001:db8::1"] {
            assert_eq!(check(right, &services), Ok(()), "{right}");
        }
        for (wrong, why) in [
            ("127.0.0.1", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("0.0.0.0", "unspecified"),
            ("::", "unspecified"),
            ("169.254.169.254", "one link"),
            ("fe80::1", "one link"),
            ("255.255.255.255", "one link"),
            ("224.0.0.1", "multicast"),
            ("10.96.0.1", "Services"),
            ("::ffff:10.96.0.1", "Services"),
            ("fd00:96::a", "Services"),
            ("::ffff:10.1.0.7", "IPv6 form"),
            ("10.1.0.7/24", "no IP address"),
            ("010.1.0.7", "no IP address"),
            ("", "no IP address"),
        ] {
            let said = check(wrong, &services).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
