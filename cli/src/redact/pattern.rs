//! Credentials that have a form of their own: private keys in PEM, tokens, what follows `Bearer` and `Basic`, passwords in URLs.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};

use super::{Find, Kind, value};

/// Prefixes of tokens of well-known services, with the shortest length of such a token.
const PREFIXES: [(&str, usize); 11] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("hvs.", 24),
];

/// Shortest token after `Bearer` that is no word.
const BEARER_MIN: usize = 6;

pub(super) fn find(text: &str) -> Vec<Find> {
    let mut finds = private_keys(text);
    finds.extend(web_tokens(text));
    finds.extend(prefixed(text));
    finds.extend(schemes(text));
    finds.extend(urls(text));
    finds
}

/// PEM of private keys; one that does not end goes on to the end of the text.
fn private_keys(text: &str) -> Vec<Find> {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let is_key = |(at, _): &(usize, &str)| {
        let name = &text[at + BEGIN.len()..];
        name.split("-----").next().is_some_and(|name| name.len() < 40 && name.contains("PRIVATE KEY"))
    };
    let whole = |(at, _): (usize, &str)| {
        let end = text[at..].find(END).map(|end| at + end + END.len());
        let end = end.and_then(|end| text[end..].find("-----").map(|tail| end + tail + 5));
        Find { at: at..end.unwrap_or(text.len()), kind: Kind::Key }
    };
    text.match_indices(BEGIN).filter(is_key).map(whole).collect()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

/// Returns the end of a token that begins here.
fn token_end(text: &str, at: usize) -> usize {
    at + text.as_bytes()[at..].iter().take_while(|&&byte| is_token(byte)).count()
}

/// JSON Web Tokens: a header that is JSON, and two more parts.
fn web_tokens(text: &str) -> Vec<Find> {
    let one = |(at, _): (usize, &str)| {
        let end = token_end(text, at);
        let mut parts = text[at..end].split('.');
        let header = parts.next().and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
        let is_header = header.is_some_and(|header| header.starts_with(b"{"));
        let has_claims = parts.next().is_some_and(|claims| claims.len() > 4);
        (is_header && has_claims).then_some(Find { at: at..end, kind: Kind::Token })
    };
    text.match_indices("eyJ").filter_map(one).collect()
}

fn prefixed(text: &str) -> Vec<Find> {
    let of = |(prefix, min): (&str, usize)| {
        let one = |(at, _): (usize, &str)| {
            let end = token_end(text, at);
            let is_within = at > 0 && text.as_bytes()[at - 1].is_ascii_alphanumeric();
            (end - at >= min && !is_within).then_some(Find { at: at..end, kind: Kind::Token })
        };
        text.match_indices(prefix).filter_map(one).collect::<Vec<_>>()
    };
    PREFIXES.into_iter().flat_map(of).collect()
}

/// Finds credentials behind the name of an authentication scheme.
fn schemes(text: &str) -> Vec<Find> {
    let lower = text.to_ascii_lowercase();
    let of = |scheme: &str, is_one: fn(&str) -> bool| {
        let one = |(at, _): (usize, &str)| {
            let start = at + scheme.len();
            let end = token_end(text, start);
            is_one(&text[start..end]).then_some(Find { at: start..end, kind: Kind::Authorization })
        };
        lower.match_indices(scheme).filter_map(one).collect::<Vec<_>>()
    };
    let is_bearer = |token: &str| token.len() >= BEARER_MIN && !value::is_word(token);
    let is_basic = |token: &str| STANDARD.decode(token).is_ok_and(|pair| pair.contains(&b':'));
    of("bearer ", is_bearer).into_iter().chain(of("basic ", is_basic)).collect()
}

/// Passwords in URLs: between the user's name and the host.
fn urls(text: &str) -> Vec<Find> {
    let one = |(at, scheme): (usize, &str)| {
        let start = at + scheme.len();
        let is_end = |char: char| char.is_whitespace() || "/?#\"'<>\\".contains(char);
        let authority = text[start..].split(is_end).next().unwrap_or_default();
        let (user, _) = authority.rsplit_once('@')?;
        let (name, password) = user.split_once(':')?;
        let start = start + name.len() + 1;
        Some(Find { at: start..start + password.len(), kind: Kind::Url })
    };
    text.match_indices("://").filter_map(one).collect()
}
