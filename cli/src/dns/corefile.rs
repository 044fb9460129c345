//! The Corefile of CoreDNS, with and without a server block for the zone of the set: decided from its text alone.
//!
//! | module | holds |
//! |---|---|
//! | `grammar` | which server blocks there are |
//! | `marked` | lines of ours in somebody else's text |

mod grammar;
mod marked;
#[cfg(test)]
mod samples;

use self::grammar::{Block, Directive, Unreadable, Word};

/// What the plugin `kubernetes` serves nearly everywhere.
const CLUSTER_ZONE: &str = "cluster.local";

/// Why nothing can be decided.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// Somebody changed our marks.
    #[error(
        "the lines \"# freeport: begin\" and \"# freeport: end\" are no pair, each once and in this order: put the missing one back, or \
         delete by hand what is left of the block"
    )]
    Marks,
    /// Braces or quotes do not match, or there are none.
    #[error("line {0} cannot be read: a server block has its directives in braces, and quotes are closed")]
    Unreadable(usize),
    /// Which port to serve is that block's.
    #[error(
        "no server block has the plugin `kubernetes` and serves plain DNS, whose port the new one would have: is it the right \
         ConfigMap? If the block is in a file that is imported, add that for {0} by hand (docs/dns.md)"
    )]
    NoCluster(String),
    /// CoreDNS would not start.
    #[error(
        "{0} is served twice, by what `freeport dns` wrote and by {1}: take one of them away (`freeport dns --remove`)"
    )]
    Twice(String, Claim),
}

impl From<marked::Broken> for Error {
    fn from(_: marked::Broken) -> Self {
        Self::Marks
    }
}

impl From<Unreadable> for Error {
    fn from(Unreadable(line): Unreadable) -> Self {
        Self::Unreadable(line)
    }
}

/// Where somebody else has the zone already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    line: usize,
    text: String,
}

impl std::fmt::Display for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} (`{}`)", self.line, self.text)
    }
}

/// What there is to do about a Corefile.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It is to be this.
    Write(String),
    /// It is as it is to be.
    Leave,
    /// The zone is there, but not by us: that is left alone.
    Foreign(Claim),
}

/// Puts a server block for `zone` at the end, or brings the one that is there up to date.
pub(super) fn add(text: &str, zone: &str) -> Result<Course, Error> {
    let others = marked::blanked(text)?;
    let blocks = grammar::blocks(others.as_deref().unwrap_or(text))?;
    match (claim_in(&blocks, zone), others) {
        (Some(claim), None) => return Ok(Course::Foreign(claim)),
        (Some(claim), Some(_)) => return Err(Error::Twice(zone.into(), claim)),
        (None, _) => {}
    }
    let block = of_cluster(&blocks).ok_or_else(|| Error::NoCluster(zone.into()))?;
    let with = marked::put(text, &lines(zone, block))?;
    Ok(if with == text { Course::Leave } else { Course::Write(with) })
}

/// Takes away what [`add`] put there, to the byte.
pub(super) fn remove(text: &str, zone: &str) -> Result<Course, Error> {
    Ok(match marked::cut(text)? {
        Some(rest) => Course::Write(rest),
        None => claim(text, zone).map_or(Course::Leave, Course::Foreign),
    })
}

/// The lines that [`add`] has put there.
pub(super) fn ours(text: &str) -> Option<&str> {
    marked::find(text).ok().flatten().map(|range| &text[range])
}

/// Who has the zone in this text, as far as it can be read.
pub(super) fn claim(text: &str, zone: &str) -> Option<Claim> {
    claim_in(&grammar::blocks(text).ok()?, zone)
}

fn claim_in(blocks: &[Block], zone: &str) -> Option<Claim> {
    let at = |word: &Word, text: &str| Claim { line: word.line, text: text.to_owned() };
    blocks.iter().find_map(|block| {
        let key = block.keys.iter().find(|key| is_zone(served(&key.text).zone, zone));
        let its = |directive: &Directive| {
            let mut zones = directive.option("multicluster");
            let given = directive.is("kubernetes") && zones.any(|given| is_zone(given, zone));
            given.then(|| at(&directive.words[0], &format!("multicluster {zone}")))
        };
        key.map(|key| at(key, &key.text)).or_else(|| block.directives.iter().find_map(its))
    })
}

fn is_zone(text: &str, zone: &str) -> bool {
    text.strip_suffix('.').unwrap_or(text).eq_ignore_ascii_case(zone)
}

/// The server block that answers for the cluster itself.
fn of_cluster(blocks: &[Block]) -> Option<&Block> {
    let kubernetes = |block: &'_ &Block| {
        block.directives.iter().any(|directive| directive.is("kubernetes"))
            && block.keys.iter().any(|key| served(&key.text).is_plain_dns)
    };
    let usual = |block: &'_ &Block| {
        let mut directives = block.directives.iter().filter(|directive| directive.is("kubernetes"));
        directives.any(|directive| directive.arguments().any(|zone| is_zone(zone, CLUSTER_ZONE)))
    };
    let mut candidates = blocks.iter().filter(kubernetes);
    candidates.clone().find(usual).or_else(|| candidates.next())
}

/// A server block for the zone beside that of the cluster, where that one listens. Options that came after `multicluster` would keep
/// a CoreDNS from starting that knows this one.
fn lines(zone: &str, cluster: &Block) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in &cluster.keys {
        let served = served(&key.text);
        let key = served.port.map_or(zone.to_owned(), |port| format!("{zone}:{port}"));
        if served.is_plain_dns && !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut lines = vec![
        "# `freeport dns` writes these lines, `freeport dns --remove` takes them back.".to_owned(),
        format!("{} {{", keys.join(" ")),
    ];
    for directive in cluster.directives.iter().filter(|directive| directive.is("bind")) {
        lines.extend(copied(directive));
    }
    let own = format!(
        "    errors\n    kubernetes {zone} {{\n        multicluster {zone}\n        ttl 5\n    }}\n    loadbalance\n}}"
    );
    lines.extend(own.lines().map(str::to_owned));
    lines
}

/// Its lines, as they are there but for spaces and comments.
fn copied(directive: &Directive) -> Vec<String> {
    let (mut lines, mut nesting) = (Vec::<String>::new(), 1);
    for word in &directive.words {
        nesting -= usize::from(word.text == "}");
        match lines.last_mut() {
            Some(line) if !word.begins_line => *line = format!("{line} {}", word.raw),
            _ => lines.push(format!("{}{}", "    ".repeat(nesting), word.raw)),
        }
        nesting += usize::from(word.text == "{");
    }
    lines
}

/// What a server block's key says.
struct Served<'a> {
    zone: &'a str,
    /// As it is written; without one, CoreDNS has a default that can be set where it is started.
    port: Option<&'a str>,
    /// And not DNS by way of TLS or HTTPS.
    is_plain_dns: bool,
}

fn served(key: &str) -> Served<'_> {
    let (scheme, rest) = key.split_once("://").unwrap_or(("dns", key));
    let is_port = |port: &str| {
        let variable = port.starts_with("{$") || port.starts_with("{%");
        variable || (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let split = rest.rsplit_once(':').filter(|(_, port)| is_port(port));
    let (zone, port) = split.map_or((rest, None), |(zone, port)| (zone, Some(port)));
    Served { zone, port, is_plain_dns: scheme.eq_ignore_ascii_case("dns") }
}
