//! Whether requests to an API server use a proxy: decided as kubectl and other Go programs do.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

/// The proxy for `server`: `said` is that of a kubeconfig or a ClusterSet, which counts whatever the environment (`variable`) says.
pub fn of(server: &Uri, said: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set =
        |names: [&str; 2]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        return Some(said.to_owned());
    }
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let direct = set(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    if is_loopback(host) || direct.split(',').any(|entry| covers(entry.trim(), host)) {
        return None;
    }
    set(["HTTPS_PROXY", "https_proxy"])
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether an entry of `NO_PROXY` means this host: `*`, an address, a network, or a domain with all that is below it.
fn covers(entry: &str, host: &str) -> bool {
    if entry == "*" {
        return true;
    }
    let Ok(address) = host.parse::<IpAddr>() else {
        let domain = entry.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
        let host = host.to_ascii_lowercase();
        let is_below =
            host.strip_suffix(&domain).is_some_and(|above| above.is_empty() || above.ends_with('.'));
        return !domain.is_empty() && is_below;
    };
    match entry.parse::<IpNet>() {
        Ok(network) => network.contains(&address),
        Err(_) => entry.parse() == Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(server: &str, said: Option<&str>, no_proxy: &str) -> Option<String> {
        of(&server.parse().unwrap(), said, |name| match name {
            "https_proxy" => Some("http://proxy:3128".into()),
            "NO_PROXY" => Some(no_proxy.into()),
            _ => None,
        })
    }

    #[test]
    fn the_environment_counts_unless_it_spares_the_server() {
        let through = |server: &str, no_proxy: &str| asked(server, None, no_proxy).is_some();
        assert!(through("https://10.0.0.1:6443", ""));
        assert!(through("https://10.0.0.1:6443", "10.0.0.2, 10.1.0.0/16,example.org"));
        for spares in ["10.0.0.1", "a, 10.0.0.0/8", "*", "10.0.0.1/32", "0.0.0.0/0"] {
            assert!(!through("https://10.0.0.1:6443", spares), "{spares}");
        }
        for spares in ["example.org", ".example.org", "*.example.org", "API.example.org"] {
            assert!(!through("https://api.example.org", spares), "{spares}");
        }
        assert!(through("https://badexample.org", "example.org"));
        assert!(!through("https://[fd00::1]:6443", "fd00::/8"));
        assert!(through("https://[fd00::1]:6443", "fc00::/8, ::/129, nonsense/x"));
        for loopback in ["https://127.0.0.1:6443", "https://[::1]:6443", "https://localhost:6443"] {
            assert!(!through(loopback, ""), "{loopback}");
        }
    }

    #[test]
    fn the_kubeconfig_has_the_last_word() {
        assert_eq!(asked("https://127.0.0.1", Some("http://own"), "*").as_deref(), Some("http://own"));
        assert!(asked("https://10.0.0.1", Some(""), "").is_some());
        assert_eq!(of(&"https://10.0.0.1".parse().unwrap(), None, |_| None), None);
    }
}
