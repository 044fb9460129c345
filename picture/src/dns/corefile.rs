//! The Corefile of CoreDNS with and without a server block for [`ZONE`], decided from its text alone.
//!
//! Only the usual Corefile is read, as kubeadm and distributions write it: the keys of a server block begin their line and end it with
//! a brace, the closing brace begins its line too, and all else is indented. For any other the caller says what to add by hand.

mod marked;

pub use self::marked::Broken;

/// The zone of a ClusterSet, as the Multi-Cluster Services API names it.
pub const ZONE: &str = "clusterset.local";

const NOTE: &str = "# `freeport dns` writes these lines, `freeport dns --remove` takes them back.\n";

/// Why the block cannot be added.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Somebody changed our marks.
    #[error("{0}")]
    Marks(#[from] Broken),
    /// It is not the usual Corefile; the reason why.
    #[error("{0}")]
    Unusual(String),
}

/// The text with our block at the end, or with the one that it has brought up to date.
pub fn add(text: &str) -> Result<String, Error> {
    let is_there = has_ours(text)?;
    match port(marked::cut(text)?.as_deref().unwrap_or(text)) {
        Ok(port) => Ok(marked::put(text, &(NOTE.to_owned() + &block(port)))?),
        // Somebody changed the rest later. Our block goes on to work.
        Err(_) if is_there => Ok(text.to_owned()),
        Err(why) => Err(Error::Unusual(why)),
    }
}

/// The text without what [`add`] put there, to the byte.
pub fn remove(text: &str) -> Result<String, Broken> {
    Ok(marked::cut(text)?.unwrap_or_else(|| text.to_owned()))
}

/// Whether [`add`] put lines there.
pub fn has_ours(text: &str) -> Result<bool, Broken> {
    Ok(marked::find(text)?.is_some())
}

/// Where somebody else names the zone, as the key of a server block or in a directive.
pub fn claim(text: &str) -> Option<String> {
    let text = marked::blanked(text);
    let claims = text.lines().enumerate().flat_map(|(at, line)| words(line).map(move |word| (at + 1, word)));
    let mut claims = claims.filter(|(_, word)| zone_of(word).eq_ignore_ascii_case(ZONE));
    claims.next().map(|(line, word)| format!("line {line} (`{word}`)"))
}

/// The server block for the zone. `port` is that of the block for the cluster, with its colon.
///
/// Its options are those of the first CoreDNS with `multicluster`: one that came later would keep that from starting.
pub fn block(port: &str) -> String {
    format!(
        "{ZONE}{port} {{\n    errors\n    kubernetes {ZONE} {{\n        multicluster {ZONE}\n        ttl 5\n    }}\n    loadbalance\n}}\n"
    )
}

/// What CoreDNS reads of a line: `#` begins a comment anywhere.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split('#').next().unwrap_or_default().split_whitespace()
}

/// The zone in the key of a server block, without scheme and port.
fn zone_of(key: &str) -> &str {
    let key = key.split_once("://").map_or(key, |(_, key)| key);
    key.split(':').next().unwrap_or_default().trim_matches(['"', ',', '.'])
}

/// The port of the server block that has the plugin `kubernetes`, with its colon; empty if it has none. Or why it is not known.
fn port(text: &str) -> Result<&str, String> {
    let blocks = blocks(text)?;
    let of_cluster: Vec<&Block> =
        blocks.iter().filter(|block| block.directives.contains(&"kubernetes")).collect();
    let [block] = of_cluster[..] else {
        return Err(format!("{} server blocks have the plugin `kubernetes`, not one", of_cluster.len()));
    };
    let keys = block.keys.join(" ");
    if block.directives.contains(&"bind") {
        return Err(format!("server block `{keys}` has `bind`, which the new block has to have as well"));
    }
    let mut ports: Vec<Option<&str>> = block.keys.iter().map(|key| port_of(key)).collect();
    ports.dedup();
    match ports[..] {
        [Some(port)] => Ok(port),
        _ => Err(format!("the keys of server block `{keys}` are not all ZONE:PORT with the same port")),
    }
}

/// None for a scheme, a variable, a network of IPv6, a list with commas.
fn port_of(key: &str) -> Option<&str> {
    let (zone, port) = key.split_at(key.find(':').unwrap_or(key.len()));
    let is_port = port.is_empty() || (port.len() > 1 && port[1..].bytes().all(|b| b.is_ascii_digit()));
    (is_port && !zone.ends_with(',')).then_some(port)
}

#[derive(Default)]
struct Block<'a> {
    keys: Vec<&'a str>,
    /// The first word of each line in it.
    directives: Vec<&'a str>,
    is_closed: bool,
}

/// The server blocks. What is in imported files is not seen.
fn blocks(text: &str) -> Result<Vec<Block<'_>>, String> {
    let mut blocks = Vec::<Block<'_>>::new();
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = words(line).collect();
        let open = blocks.last_mut().filter(|block| !block.is_closed);
        match (open, &words[..]) {
            (_, []) | (None, ["import", _]) => {}
            (Some(block), [first, ..]) if line.starts_with([' ', '\t']) => block.directives.push(first),
            (Some(block), ["}"]) => block.is_closed = true,
            // Not a snippet: what imports it has what is in it.
            (None, [keys @ .., "{"]) if keys.first().is_some_and(|key| !key.starts_with('(')) => {
                blocks.push(Block { keys: keys.to_vec(), ..Block::default() });
            }
            _ => {
                return Err(format!(
                    "line {} (`{}`) begins or ends no server block",
                    at + 1,
                    words.join(" ")
                ));
            }
        }
    }
    match blocks.last() {
        Some(Block { is_closed: false, .. }) => Err("the last server block is not closed".into()),
        _ => Ok(blocks),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KUBEADM: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
";
    /// As k3s has it, but for its directives without imports.
    const IMPORTS: &str = "\
.:53 {
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    pods insecure
      }
  import /etc/coredns/custom/*.override
}
import /etc/coredns/custom/*.server
";
    /// As OpenShift and the fleet of our tests have keys, behind a zone that is forwarded.
    const KEYS: &str = "\
# example
example.com:53 {
    forward . 10.0.0.1
}
.:5353 hostname.bind:5353 { # both
    kubernetes cluster.local
}";
    const ALL: [&str; 4] = [KUBEADM, KUBEADM.trim_ascii_end(), IMPORTS, KEYS];

    #[test]
    fn the_usual_corefile_gets_the_block() {
        for (text, port) in ALL.into_iter().zip([":53", ":53", ":53", ":5353"]) {
            let with = add(text).unwrap();
            assert!(with.starts_with(text) && with.contains(block(port).trim_end()), "{with}");
            assert_eq!(add(&with).unwrap(), with);
            assert_eq!(remove(&with).unwrap(), text);
            assert_eq!(remove(text).unwrap(), text);
            assert_eq!(claim(&with), None);
        }
        let docs = include_str!("../../../docs/dns.md");
        assert!(docs.contains(&format!("```\n{}```\n", block(":53"))));
    }

    #[test]
    fn the_block_follows_the_port() {
        let moved = |to: &str| add(KUBEADM).unwrap().replacen(".:53 {", to, 1);
        for (key, port) in [(".:5353 {", ":5353"), (". {", "")] {
            let with = add(&moved(key)).unwrap();
            assert!(with.contains(&format!("\n{ZONE}{port} {{")) && !with.contains(&block(":53")), "{with}");
            assert_eq!(remove(&with).unwrap(), KUBEADM.replacen(".:53 {", key, 1));
        }
        let unusual = moved("tls://.:853 {");
        assert_eq!(add(&unusual).unwrap(), unusual, "the block is there, and stays");
    }

    #[test]
    fn any_other_corefile_is_refused_with_the_reason() {
        let main = |keys: &str, more: &str| format!("{keys} {{\n  kubernetes cluster.local\n{more}}}\n");
        for (text, why) in [
            (String::new(), "0 server blocks"),
            (".:53\nkubernetes cluster.local\n".into(), "line 1 (`.:53`)"),
            (".:53 {\nkubernetes cluster.local\n}\n".into(), "line 2 (`kubernetes cluster.local`)"),
            (".:53 {\n  kubernetes cluster.local\n".into(), "not closed"),
            (main("a:53 {\n  log\n.:53", ""), "line 3 (`.:53 {`)"),
            ("(own) {\n  log\n}\n".into(), "line 1 (`(own) {`)"),
            (main(".:53", "") + &main("a:54", ""), "2 server blocks"),
            (main(".:53", "  bind lo\n"), "`.:53` has `bind`"),
            (main("tls://.:853", ""), "`tls://.:853`"),
            (main(".:53 a:54", ""), "`.:53 a:54`"),
            (main(".:{$PORT}", ""), "same port"),
            (main("fd00::/64", ""), "same port"),
            (main("a, b", ""), "same port"),
        ] {
            let Err(Error::Unusual(said)) = add(&text) else { panic!("{text}") };
            assert!(said.contains(why), "{said}: {text}");
        }
    }

    #[test]
    fn who_names_the_zone_is_told() {
        let by_hand = format!("{}clusterset.local {{\n}}\n", add(KUBEADM).unwrap());
        for (text, says) in [
            (by_hand.as_str(), Some("line 35 (`clusterset.local`)")),
            ("dns://ClusterSet.local.:1053, . {\n}\n", Some("line 1 (`dns://ClusterSet.local.:1053,`)")),
            (".:53 {\n forward clusterset.local 10.0.0.1\n}\n", Some("line 2 (`clusterset.local`)")),
            ("other.local {\n  multicluster \"clusterset.local\"\n", Some("line 2 (`\"clusterset.local\"`)")),
            ("# clusterset.local {\nmy.clusterset.local {\n}\n", None),
        ] {
            assert_eq!(claim(text).as_deref(), says, "{text}");
        }
    }

    proptest! {
        #[test]
        fn adding_and_removing_is_as_if_nothing_was(
            which in 0..ALL.len(),
            before in "(# [a-z\"{}]{0,9}\n){0,2}",
            after in "(\r?\n|# [a-z\"{}]{0,9}|\n[a-z]{1,5}\\.example \\{\r?\n\\}){0,3}",
            returns: bool,
        ) {
            let text = format!("{before}{}{after}", ALL[which]);
            let text = if returns { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
            let with = add(&text).unwrap();
            prop_assert_ne!(&with, &text);
            prop_assert_eq!(&add(&with).unwrap(), &with);
            prop_assert_eq!(remove(&with).unwrap(), text);
        }
    }
}
