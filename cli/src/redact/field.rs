//! Values of fields, variables and flags whose names say what they hold, in YAML, JSON, logs and command lines.

use super::{Find, Kind, value};

/// Ends of names of fields that hold a credential, without dashes and capitals.
const NAMES: [&str; 15] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secretkey",
    "secretaccesskey",
    "clientsecret",
    "apikey",
    "accesskey",
    "accesskeyid",
    "privatekey",
    "clientkeydata",
    "sshkey",
    "kubeconfig",
    "dockerconfigjson",
];

/// Header whose value is everything up to the end of the line.
const HEADER: &str = "authorization";

/// Name that the name of a Secret may stand behind, too.
const SECRET: &str = "secret";

/// Quotes around values.
const QUOTES: [&str; 3] = ["\\\"", "\"", "'"];

/// Reports whether a field of this name holds a credential.
pub(super) fn is_credential(name: &str) -> bool {
    let name = plain(name);
    name == HEADER || NAMES.iter().any(|end| name.ends_with(end))
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
}

pub(super) fn find(text: &str) -> Vec<Find> {
    let after =
        |(at, _): (usize, &str)| named(text, at).and_then(|(start, name)| held(text, start, name, at));
    let fields = text.match_indices([':', '=']).filter_map(after);
    fields.chain(text.match_indices("--").filter_map(|(at, _)| flag(text, at))).collect()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// The name that stands before a separator, and where.
fn named(text: &str, separator: usize) -> Option<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut end = separator;
    while end > 0 && b" \"'\\".contains(&bytes[end - 1]) && separator - end < 3 {
        end -= 1;
    }
    let length = bytes[..end].iter().rev().take_while(|&&byte| is_name(byte)).count();
    let mut start = end - length;
    // The letter of an escaped line break belongs to no name.
    if start > 0 && bytes[start - 1] == b'\\' && length > 1 {
        start += 1;
    }
    text.get(start..end).filter(|name| !name.is_empty()).map(|name| (start, name))
}

/// The value behind a separator, if it is a credential.
fn held(text: &str, start: usize, name: &str, separator: usize) -> Option<Find> {
    let plain = plain(name);
    let is_header = plain.ends_with(HEADER);
    let is_secret = plain.ends_with(SECRET);
    if !is_header && !is_secret && !is_credential(name) {
        return None;
    }
    let (at, is_quoted) = valued(text, separator + 1);
    let found = &text[at.clone()];
    let is_one = match () {
        () if is_header => !found.is_empty(),
        () if is_secret => value::is_random(found),
        () if !value::may_be_one(found) || found.starts_with(['{', '[']) => false,
        () if is_quoted || text.as_bytes()[separator] == b'=' => true,
        // Alone on its line it is a field; else it may be a sentence that goes on behind a colon.
        () => is_alone(text, start, at.end) || !value::is_word(found),
    };
    if !is_one {
        return None;
    }
    let at = if is_header && !is_quoted { at.start..line_end(text, at.start) } else { at };
    let kind = if is_header { Kind::Authorization } else { Kind::Field };
    Some(Find { at, kind })
}

/// Where the value is, and whether it is quoted.
fn valued(text: &str, at: usize) -> (std::ops::Range<usize>, bool) {
    let rest = &text[at..];
    let start = at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    if let Some(quote) = QUOTES.into_iter().find(|quote| text[start..].starts_with(quote)) {
        let start = start + quote.len();
        let line = text[start..].split('\n').next().unwrap_or_default();
        let end = start + line.find(quote).unwrap_or(line.len());
        return (start..end, true);
    }
    let is_end = |char: char| char.is_whitespace() || ",;\"'\\)}]&".contains(char);
    let length = text[start..].find(is_end).unwrap_or(text.len() - start);
    (start..start + length, false)
}

fn line_end(text: &str, at: usize) -> usize {
    let ends = ["\n", "\\n", "\"", "]"];
    let end = ends.iter().filter_map(|end| text[at..].find(end)).min();
    end.map_or(text.len(), |length| at + length)
}

/// Reports whether a line begins with the name and ends with the value.
fn is_alone(text: &str, start: usize, end: usize) -> bool {
    let before = text[..start].trim_end_matches([' ', '-', '\t']);
    let after = text[end..].trim_start_matches([' ', '\r']);
    let begins = before.is_empty() || before.ends_with('\n') || before.ends_with("\\n");
    begins && (after.is_empty() || after.starts_with('\n') || after.starts_with("\\n"))
}

/// Reports whether an argument of a command line is a flag whose value, the next one, is a credential.
pub(super) fn is_flag(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    name.len() < argument.len() && name.bytes().all(is_name) && is_credential(name)
}

/// Reports whether the argument behind such a flag is its value. It is an item of its own, so that it may be short.
pub(super) fn is_argument(argument: &str) -> bool {
    !argument.is_empty() && !argument.starts_with("--") && !value::is_plain(argument)
}

/// `--token VALUE`, or the two as items of a list.
fn flag(text: &str, at: usize) -> Option<Find> {
    let start = at + 2;
    let length = text.as_bytes()[start..].iter().take_while(|&&byte| is_name(byte)).count();
    let name = &text[start..start + length];
    if !is_credential(name) {
        return None;
    }
    let behind = start + length;
    let (at, _) = valued(text, behind + border(&text[behind..])?);
    let found = &text[at.clone()];
    (!found.starts_with('-') && value::may_be_one(found)).then_some(Find { at, kind: Kind::Field })
}

/// Length of what stands between a flag and its value: a blank, or what is between two items of a list in JSON or YAML.
fn border(rest: &str) -> Option<usize> {
    if rest.starts_with(' ') {
        return Some(1);
    }
    let unquoted = QUOTES.into_iter().find_map(|quote| rest.strip_prefix(quote));
    let line = |text: &str| text.trim_start_matches([' ', '\n']).len();
    let json = unquoted.and_then(|rest| rest[rest.len() - line(rest)..].strip_prefix(',')).map(line);
    let yaml = || {
        let item = unquoted.unwrap_or(rest);
        let item = item.strip_prefix('\n').or_else(|| item.strip_prefix("\\n"))?;
        item.trim_start_matches(' ').strip_prefix("- ").map(str::len)
    };
    json.or_else(yaml).map(|left| rest.len() - left)
}
