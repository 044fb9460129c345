//! Where the endpoints of a member may be: the ranges of addresses that its ServiceAccount at the leader notes.

use std::{collections::BTreeMap, fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;

/// Most bytes of what the leader's Lease says of all members: beside all else there that is what an API server still takes.
const BYTES_MAX: usize = 32 << 10;

/// Ranges of addresses, of both families. None at all bound nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Box<[IpNet]>);

impl Ranges {
    /// All of these, each once.
    pub fn of(ranges: impl IntoIterator<Item = IpNet>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().map(|range| range.trunc()).collect();
        ranges.sort();
        ranges.dedup();
        Self(ranges.into())
    }

    /// Whether there is no range.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the address is in one of them. Of a family of which there is no range, none is.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(&address))
    }

    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = &IpNet> {
        self.0.iter()
    }
}

impl FromStr for Ranges {
    type Err = String;

    /// Reads `10.1.0.0/16,fd00:1::/64`.
    fn from_str(text: &str) -> Result<Self, String> {
        let range = |range: &str| {
            range.trim().parse::<IpNet>().map_err(|_| format!("{range:?} is no range such as 10.1.0.0/16"))
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        Ok(Self::of(text.split(',').map(range).collect::<Result<Vec<_>, _>>()?))
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&ranges.join(","))
    }
}

/// The ranges of those members that have some, by cluster ID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds(BTreeMap<String, Ranges>);

impl Bounds {
    /// Reads annotation [`MEMBER_RANGES`](crate::label::MEMBER_RANGES) of a leader's Lease. What cannot be read bounds nobody.
    pub fn said(text: &str) -> Self {
        let member = |word: &str| {
            let (cluster, ranges) = word.split_once('=')?;
            Some((cluster.to_owned(), ranges.parse().ok()?))
        };
        text.split(' ').filter_map(member).collect()
    }

    /// The annotation, and which members there is no room for in it.
    pub fn annotation(&self) -> (String, Vec<&str>) {
        let (mut text, mut left_out) = (String::new(), Vec::new());
        for (cluster, ranges) in &self.0 {
            let word = format!("{cluster}={ranges}");
            if text.len() + word.len() >= BYTES_MAX {
                left_out.push(cluster.as_str());
                continue;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&word);
        }
        (text, left_out)
    }

    /// The ranges of a member; none if its addresses are not bound.
    pub fn of(&self, cluster: &str) -> Option<&Ranges> {
        self.0.get(cluster)
    }
}

impl FromIterator<(String, Ranges)> for Bounds {
    /// Of a member that occurs more than once, all its ranges count.
    fn from_iter<T: IntoIterator<Item = (String, Ranges)>>(members: T) -> Self {
        let mut all = BTreeMap::<String, Ranges>::new();
        for (cluster, ranges) in members.into_iter().filter(|(_, ranges)| !ranges.is_empty()) {
            let had = all.remove(&cluster).unwrap_or_default();
            all.insert(cluster, Ranges::of(had.iter().chain(ranges.iter()).copied()));
        }
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_of_both_families_are_read() {
        let ranges: Ranges = "10.1.0.7/16, fd00:1::/64,10.1.0.0/16".parse().unwrap();
        assert_eq!(ranges.to_string(), "10.1.0.0/16,fd00:1::/64");
        let has = |address: &str| ranges.contains(address.parse().unwrap());
        assert!(["10.1.0.0", "10.1.255.255", "fd00:1::7"].into_iter().all(has));
        assert!(!["10.2.0.0", "fd00:1:0:1::", "::ffff:10.1.0.7"].into_iter().any(has));
        assert_eq!("".parse::<Ranges>(), Ok(Ranges::default()));
        for odd in ["10.1.0.0", "10.1.0.0/33", "10.1.0.0/16,", "any", "10.1.0.0/16 fd00::/64"] {
            assert!(odd.parse::<Ranges>().is_err(), "{odd}");
        }
    }

    #[test]
    fn what_cannot_be_read_bounds_nobody_and_hides_nothing_else() {
        let bounds = Bounds::said("east=10.1.0.0/16 west=10.1/16 = north x=y=z south=fd00::/64 e=");
        assert_eq!(bounds.annotation().0, "east=10.1.0.0/16 south=fd00::/64");
        assert!(bounds.of("west").is_none());
    }

    #[test]
    fn of_an_account_that_is_there_twice_all_ranges_count() {
        let bounds: Bounds = ["10.1.0.0/16", "10.2.0.0/16"]
            .map(|range| ("east".to_owned(), range.parse().unwrap()))
            .into_iter()
            .collect();
        assert_eq!(bounds.of("east").unwrap().to_string(), "10.1.0.0/16,10.2.0.0/16");
    }

    #[test]
    fn an_annotation_has_room_for_many_members_and_no_more() {
        let member = |n: u32| (format!("member-{n:04}"), format!("10.{}.0.0/16", n % 256).parse().unwrap());
        let bounds: Bounds = (0..2000).map(member).collect();
        let (text, left_out) = bounds.annotation();
        assert!(text.len() < BYTES_MAX && left_out.len() < 1000, "{} {}", text.len(), left_out.len());
        assert_eq!(left_out.last(), Some(&"member-1999"));
        let heard = Bounds::said(&text);
        assert!(heard.of("member-0000").is_some() && heard.of("member-1999").is_none());
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard(members in prop::collection::btree_map("[a-z]{1,8}", prop::collection::vec((any::<IpAddr>(), 0..33u8), 1..4), 0..9)) {
            let ranges = |ranges: Vec<(IpAddr, u8)>| Ranges::of(ranges.into_iter().map(|(ip, length)| IpNet::new(ip, length).unwrap()));
            let bounds: Bounds = members.into_iter().map(|(cluster, of)| (cluster, ranges(of))).collect();
            prop_assert_eq!(Bounds::said(&bounds.annotation().0), bounds);
        }

        #[test]
        fn a_range_is_what_begins_with_the_same_bits(a: u32, b: u32, length in 0..33u8) {
            let net = IpNet::new(std::net::Ipv4Addr::from(a).into(), length).unwrap();
            let is_same = a.checked_shr(32 - u32::from(length)).unwrap_or(0) == b.checked_shr(32 - u32::from(length)).unwrap_or(0);
            prop_assert_eq!(Ranges::of([net]).contains(std::net::Ipv4Addr::from(b).into()), is_same);
        }
    }
}
