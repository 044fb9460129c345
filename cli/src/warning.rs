//! Warnings: what may be a mistake, and does not stop the command.

use std::net::IpAddr;

use crate::{
    cluster::Cluster,
    objects::{PolicyDrift, drift, leader},
    run::{Part, Run},
};

/// Warns if policy `freeport-records` is off, as far as it may be read.
pub(crate) async fn policy_is_off(leader: &Cluster, run: &Run) {
    let wanted = leader::policy();
    let (Ok(policy), Ok(binding)) = (leader.read(&wanted[0]).await, leader.read(&wanted[1]).await) else {
        return;
    };
    if let Some(PolicyDrift { place, what }) = drift(&wanted, &[policy, binding]) {
        run.warn(&format!(
            "{}: {place} {what}: any member can write any other's records; run `freeport init` there again",
            leader.name
        ));
    }
}

/// Warns if the member gets a loopback address for the leader.
pub(crate) fn is_loopback(leader: &Cluster, server: &str, run: &Run) {
    if run.does(Part::Member) && is_loopback_address(server) {
        run.warn(&format!(
            "{}: the member is to reach the leader at {server}, which is a loopback address: a Pod or \
             another host would reach itself there; name another with --leader-server",
            leader.name
        ));
    }
}

/// Warns if consumers get a loopback address for the provider.
pub(crate) fn consumers_reach_themselves(provider: &Cluster, address: &str, run: &Run) {
    if is_loopback_address(address) {
        run.warn(&format!(
            "{}: consumers are to reach the provider at {address}, which is a loopback address: a Pod or another host would \
             reach itself there; name another with --address",
            provider.name
        ));
    }
}

fn is_loopback_address(server: &str) -> bool {
    let uri = api::cluster_set::server_uri(server);
    let Some(host) = uri.as_ref().and_then(|uri| uri.host()) else {
        return false;
    };
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_recognised() {
        for home in [
            "https://127.0.0.1:6443",
            "https://127.1.2.3",
            "https://[::1]:6443",
            "https://[::ffff:127.0.0.1]:6443",
            "https://localhost:6443/k8s",
            "https://LocalHost",
        ] {
            assert!(is_loopback_address(home), "{home}");
        }
        for away in
            ["https://10.0.0.1:6443", "https://localhost.example.org", "https://[2001:db8::1]", "nonsense"]
        {
            assert!(!is_loopback_address(away), "{away}");
        }
    }
}
