//! Endpoints by which a change is told from the one before it: the first address is a number.

use std::net::Ipv4Addr;

/// Endpoints of a Service.
pub(crate) const COUNT: usize = 3;
/// The number in the endpoints that a Service begins with; each change has a greater one.
pub(crate) const FIRST: u32 = 1;
/// Before the number.
const NUMBERED: u8 = 10;

/// The first one has the number, which fits into three bytes; the others are always the same.
pub(crate) fn addresses(mark: u32) -> [String; COUNT] {
    [numbered(mark), "192.168.7.1".to_owned(), "192.168.7.2".to_owned()]
}

pub(crate) fn numbered(mark: u32) -> String {
    let [_, a, b, c] = mark.to_be_bytes();
    Ipv4Addr::new(NUMBERED, a, b, c).to_string()
}

/// The number among these addresses.
pub(crate) fn mark<'a>(mut addresses: impl Iterator<Item = &'a str>) -> Option<u32> {
    addresses.find_map(|address| {
        let [first, a, b, c] = address.parse::<Ipv4Addr>().ok()?.octets();
        (first == NUMBERED).then(|| u32::from_be_bytes([0, a, b, c]))
    })
}
