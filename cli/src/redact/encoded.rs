//! Base64 in which something is found. Lines of one text, as of the program `base64`, are decoded together.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{Find, Kind};

/// Shortest run that is decoded.
const MIN: usize = 16;

/// Shortest line after which the next one goes on with the same text.
const LINE: usize = 60;

/// As they are found: with and without padding, and with whatever bits are left over.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Base64 in which `within` finds something.
pub(super) fn find(text: &str, within: impl Fn(&str) -> Option<Kind>) -> Vec<Find> {
    let mut finds = Vec::new();
    let runs = runs(text);
    let mut at = 0;
    while at < runs.len() {
        let lines = wrapped(text, &runs[at..]);
        let whole: String = runs[at..at + lines].iter().map(|run| &text[run.clone()]).collect();
        if let Some(kind) = hidden(&whole, &within) {
            finds.push(Find { at: runs[at].start..runs[at + lines - 1].end, kind });
        }
        at += lines;
    }
    finds
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// Runs of the alphabet that are long enough, or follow a line that is.
fn runs(text: &str) -> Vec<std::ops::Range<usize>> {
    let (bytes, mut runs, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        // The letter of an escaped line break is no part of what follows.
        if at > 0 && bytes[at - 1] == b'\\' && b"nrt".contains(&bytes[at]) {
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().take_while(|&&byte| is_base64(byte)).count();
        let padding = bytes[at + length..].iter().take(2).take_while(|&&byte| byte == b'=').count();
        let end = at + length + padding;
        let follows = |last: &std::ops::Range<usize>| last.len() >= LINE && is_break(&text[last.end..at]);
        if length >= MIN || length > 0 && runs.last().is_some_and(follows) {
            runs.push(at..end);
        }
        at = end.max(at + 1);
    }
    runs
}

/// How many of these runs are lines of one text.
fn wrapped(text: &str, runs: &[std::ops::Range<usize>]) -> usize {
    let goes_on = |pair: &&[std::ops::Range<usize>]| {
        pair[0].len() >= LINE && is_break(&text[pair[0].end..pair[1].start])
    };
    1 + runs.windows(2).take_while(goes_on).count()
}

/// A line break, as it is or escaped, and how far the next line is indented.
fn is_break(text: &str) -> bool {
    let rest = text.strip_prefix('\n').or_else(|| text.strip_prefix("\\n"));
    rest.is_some_and(|rest| rest.bytes().all(|byte| byte == b' '))
}

/// What is found in a run, or in the part of it behind the last slash: a path may end with it.
fn hidden(run: &str, within: &impl Fn(&str) -> Option<Kind>) -> Option<Kind> {
    let of = |run: &str| decoded(run).into_iter().find_map(|bytes| known(&bytes, within));
    let tail = run.rsplit_once('/').map(|(_, tail)| tail).filter(|tail| tail.len() >= MIN);
    of(run).or_else(|| tail.and_then(of))
}

fn decoded(run: &str) -> Option<Vec<u8>> {
    let run = run.trim_end_matches('=');
    // Characters that are left over hold less than a byte.
    let run = if run.len() % 4 == 1 { &run[..run.len() - 1] } else { run };
    let alphabet = if run.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    alphabet.decode(run).ok()
}

fn known(bytes: &[u8], within: &impl Fn(&str) -> Option<Kind>) -> Option<Kind> {
    if is_private_key(bytes) {
        return Some(Kind::Key);
    }
    let is_text = |text: &&str| text.chars().all(|char| !char.is_control() || "\n\r\t".contains(char));
    std::str::from_utf8(bytes).ok().filter(is_text).and_then(within)
}

/// Whether this is DER of a private key: a sequence that begins with its version, where a certificate has another sequence.
fn is_private_key(bytes: &[u8]) -> bool {
    let rest = match bytes {
        [0x30, 0x82, _, _, rest @ ..] | [0x30, 0x81, _, rest @ ..] | [0x30, _, rest @ ..] => rest,
        _ => return false,
    };
    bytes.len() >= 2 * MIN && matches!(rest, [0x02, 0x01, 0x00 | 0x01, ..])
}
