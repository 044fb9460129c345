//! Which addresses the endpoints of other clusters may have here: pure.

use std::{borrow::Cow, collections::BTreeSet, net::IpAddr, sync::Arc};

use api::{ranges::Bounds, slice::SlicePayload};
use ipnet::IpNet;

/// What is not known limits nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Where the endpoints of a member are, as the leader says.
    pub(crate) bounds: Bounds,
    /// The ranges of this cluster's Services.
    pub(crate) services: Arc<[IpNet]>,
    /// Addresses of the Nodes and API servers of this cluster.
    pub(crate) machines: Arc<BTreeSet<IpAddr>>,
}

impl Limits {
    /// What of a slice of `cluster` is imported, and how many addresses are left out. An endpoint without any is none.
    pub(crate) fn admit<'a>(&self, cluster: &str, said: &'a SlicePayload) -> (Cow<'a, SlicePayload>, usize) {
        let is_admitted = self.admitted(cluster);
        let all = said.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        let left_out = all.filter(|address| !is_admitted(address)).count();
        if left_out == 0 {
            return (Cow::Borrowed(said), 0);
        }
        let mut rest = said.clone();
        rest.endpoints.iter_mut().for_each(|endpoint| endpoint.addresses.retain(&is_admitted));
        rest.endpoints.retain(|endpoint| !endpoint.addresses.is_empty());
        (Cow::Owned(rest), left_out)
    }

    /// Which addresses endpoints of `cluster` may have.
    pub(crate) fn admitted(&self, cluster: &str) -> impl Fn(&String) -> bool {
        let ranges = self.bounds.of(cluster);
        move |address| {
            address.parse().is_ok_and(|address: IpAddr| {
                ranges.is_none_or(|ranges| ranges.contains(address)) && !self.is_ours(address)
            })
        }
    }

    /// Whether who sends there reaches something of this cluster.
    fn is_ours(&self, address: IpAddr) -> bool {
        self.machines.contains(&address) || self.services.iter().any(|range| range.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use api::slice::Endpoint;
    use proptest::prelude::*;

    use super::*;

    fn slice(endpoints: &[Vec<&str>]) -> SlicePayload {
        let endpoint = |addresses: &Vec<&str>| Endpoint {
            addresses: addresses.iter().map(ToString::to_string).collect(),
            ..Endpoint::default()
        };
        SlicePayload { endpoints: endpoints.iter().map(endpoint).collect(), ..SlicePayload::default() }
    }

    fn limits() -> Limits {
        Limits {
            bounds: Bounds::said("east=10.1.0.0/16,10.96.0.0/24"),
            services: ["10.96.0.0/16".parse().unwrap(), "fd00:96::/112".parse().unwrap()].into(),
            machines: Arc::new(["192.0.2.1".parse().unwrap(), "10.1.0.9".parse().unwrap()].into()),
        }
    }

    fn admitted(cluster: &str, endpoints: &[Vec<&str>]) -> (Vec<Vec<String>>, usize) {
        let said = slice(endpoints);
        let (rest, left_out) = limits().admit(cluster, &said);
        (rest.endpoints.iter().map(|endpoint| endpoint.addresses.clone()).collect(), left_out)
    }

    #[test]
    fn what_is_out_of_range_or_ours_is_left_out() {
        let mixed =
            [vec!["10.1.0.7"], vec!["10.9.0.1"], vec!["10.96.0.1"], vec!["192.0.2.1"], vec!["10.1.0.9"]];
        assert_eq!(admitted("east", &mixed), (vec![vec!["10.1.0.7".to_owned()]], 4));
        let of_west = vec![vec!["10.1.0.7".to_owned()], vec!["10.9.0.1".to_owned()]];
        assert_eq!(admitted("west", &mixed), (of_west, 3), "which is not bound");
        let two = [vec!["10.1.0.7", "10.9.0.1"], vec!["fd00:96::1"]];
        assert_eq!(admitted("east", &two), (vec![vec!["10.1.0.7".to_owned()]], 2));
    }

    #[test]
    fn what_is_not_known_limits_nothing() {
        let said = slice(&[vec!["10.9.0.1"], vec!["fd00::1"]]);
        assert!(matches!(Limits::default().admit("east", &said), (Cow::Borrowed(_), 0)));
    }

    proptest! {
        /// An address is imported if and only if it is within the ranges of its cluster, if that has some, and not ours.
        #[test]
        fn what_is_imported_is_within_and_not_ours(last in prop::collection::vec(any::<(u8, u8)>(), 0..20), length in 8..33u8, is_bound: bool) {
            let address = |(a, b): &(u8, u8)| IpAddr::from([10, a % 4, 0, b % 8]);
            let bound = IpNet::new(IpAddr::from([10, 1, 0, 0]), length).unwrap();
            let limits = Limits {
                bounds: Bounds::said(&if is_bound { format!("east={bound}") } else { String::new() }),
                services: ["10.2.0.0/30".parse().unwrap()].into(),
                machines: Arc::new([IpAddr::from([10, 1, 0, 3])].into()),
            };
            let texts: Vec<_> = last.iter().map(|last| address(last).to_string()).collect();
            let said = slice(&texts.iter().map(|text| vec![text.as_str()]).collect::<Vec<_>>());
            let (rest, left_out) = limits.admit("east", &said);
            let may_be = |address: &IpAddr| {
                let IpAddr::V4(v4) = address else { return false };
                let [_, second, _, last] = v4.octets();
                let is_ours = (second == 2 && last < 4) || (second == 1 && last == 3);
                !is_ours && (!is_bound || bound.contains(address))
            };
            let want: Vec<_> = last.iter().map(address).filter(may_be).collect();
            let have: Vec<IpAddr> = rest.endpoints.iter().map(|endpoint| endpoint.addresses[0].parse().unwrap()).collect();
            prop_assert_eq!((left_out, have), (last.len() - want.len(), want));
        }
    }
}
