//! Which ports are equal: number and protocol tell them apart, and a port that names no protocol is a TCP port.

/// Protocol of a port that names none.
pub const TCP: &str = "TCP";

/// The protocol that a port says, or means by saying nothing.
pub fn protocol(said: Option<&str>) -> &str {
    said.filter(|protocol| !protocol.is_empty()).unwrap_or(TCP)
}

/// Whether two ports have the same number and protocol (rules ).
pub fn is_same(a_port: i32, a_protocol: Option<&str>, b_port: i32, b_protocol: Option<&str>) -> bool {
    a_port == b_port && protocol(a_protocol) == protocol(b_protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_a_protocol_is_tcp() {
        assert!(is_same(80, None, 80, Some("TCP")) && is_same(80, Some(""), 80, None));
        assert!(!is_same(80, None, 80, Some("UDP")) && !is_same(80, None, 81, None));
    }
}
