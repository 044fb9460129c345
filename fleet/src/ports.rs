//! Free ports on the loopback address.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

/// Below what Linux gives to outgoing connections (32768 and up) and below NodePorts (30000 and up). A client
/// that retries a loopback port of the former kind while its server is away can connect to itself and keep the
/// server from coming back.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Picks `N` free ports. The search starts at a random port, because other fleets search at the same time.
/// `None` if there are not that many.
pub(crate) fn pick<const N: usize>(taken: &mut BTreeSet<u16>) -> Option<[u16; N]> {
    let start =
        u16::try_from(RandomState::new().build_hasher().finish() % u64::from(COUNT)).unwrap_or_default();
    let mut candidates = (0..COUNT).map(|offset| FIRST + (start + offset) % COUNT);
    let mut ports = [0; N];
    for port in &mut ports {
        *port = candidates.by_ref().find(|port| !taken.contains(port) && is_free(*port))?;
        taken.insert(*port);
    }
    Some(ports)
}

/// Where a server can listen whose address has to be known before it starts, and be found again after a restart.
///
/// # Errors
///
/// `AddrInUse` if no port is free.
pub fn free_address() -> io::Result<SocketAddr> {
    let [port] = pick(&mut BTreeSet::new()).ok_or(io::ErrorKind::AddrInUse)?;
    Ok((Ipv4Addr::LOCALHOST, port).into())
}

/// Whether a server could listen there now.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picked_ports_are_free_and_distinct() {
        let mut taken = BTreeSet::new();
        let first: [u16; 3] = pick(&mut taken).unwrap();
        let second: [u16; 3] = pick(&mut taken).unwrap();
        assert_eq!(taken.len(), 6);
        assert!(first.iter().chain(&second).all(|port| (FIRST..FIRST + COUNT).contains(port)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first[0])).unwrap();
        assert!(!is_free(first[0]));
        drop(listener);
    }
}
