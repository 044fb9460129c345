//! Base64 in which something is found, compressed by gzip or not. Lines of one text, as of the program `base64`, are decoded together.

use std::{collections::BTreeSet, io::Read, ops::Range};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD_NO_PAD},
};
use flate2::read::GzDecoder;

use super::{Find, Kind};

/// Shortest run that is decoded: `token=abcd` is as long.
const MIN: usize = 14;

/// Shortest private key in DER, in bytes.
const KEY_MIN: usize = 32;

/// First bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Limit of decompressed text, in bytes.
const GZIP_MAX: u64 = 1 << 20;

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

/// Returns the texts that base64 contains if it encodes these bytes among others, in both alphabets.
pub(super) fn needles(bytes: &[u8]) -> BTreeSet<String> {
    let shifted = |shift: usize| {
        let encoded = STANDARD_NO_PAD.encode([&[0; 2][..shift], bytes].concat());
        // Characters that also hold bits of what stands before and behind are left out.
        let (first, end) = ((shift * 8).div_ceil(6), (shift + bytes.len()) * 8 / 6);
        encoded[first..end].to_owned()
    };
    let standard = (0..3).map(shifted);
    standard.flat_map(|needle| [needle.replace('+', "-").replace('/', "_"), needle]).collect()
}

/// The run of base64 that this is a part of.
pub(super) fn around(text: &str, part: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let before = bytes[..part.start].iter().rev().take_while(|&&byte| is_base64(byte)).count();
    let after = bytes[part.end..].iter().take_while(|&&byte| is_base64(byte) || byte == b'=').count();
    let start = part.start - before;
    let is_escaped = before > 0 && start > 0 && is_escape(&bytes[start - 1..=start]);
    start + usize::from(is_escaped)..part.end + after
}

/// Reports whether this is an escaped line break, whose letter is no part of what follows.
fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'\\', b'n' | b'r' | b't'])
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// Runs of the alphabet that are long enough, or follow a line that is.
fn runs(text: &str) -> Vec<Range<usize>> {
    let (bytes, mut runs, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        if at > 0 && is_escape(&bytes[at - 1..=at]) {
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().take_while(|&&byte| is_base64(byte)).count();
        let padding = bytes[at + length..].iter().take(2).take_while(|&&byte| byte == b'=').count();
        let end = at + length + padding;
        let follows = |last: &Range<usize>| last.len() >= LINE && is_break(&text[last.end..at]);
        if length >= MIN || length > 0 && runs.last().is_some_and(follows) {
            runs.push(at..end);
        }
        at = end.max(at + 1);
    }
    runs
}

/// Counts the runs that are lines of one text.
fn wrapped(text: &str, runs: &[Range<usize>]) -> usize {
    let goes_on =
        |pair: &&[Range<usize>]| pair[0].len() >= LINE && is_break(&text[pair[0].end..pair[1].start]);
    1 + runs.windows(2).take_while(goes_on).count()
}

/// A line break, as it is or escaped, and how far the next line is indented.
fn is_break(text: &str) -> bool {
    let rest = text.strip_prefix('\n').or_else(|| text.strip_prefix("\\n"));
    rest.is_some_and(|rest| rest.bytes().all(|byte| byte == b' '))
}

/// Returns the kind of credential in a run, or in its part behind the last slash: a path may end with it.
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
    if bytes.starts_with(&GZIP) {
        return compressed(bytes, within);
    }
    let is_text = |text: &&str| text.chars().all(|char| !char.is_control() || "\n\r\t".contains(char));
    std::str::from_utf8(bytes).ok().filter(is_text).and_then(within)
}

/// Returns the kind of credential in gzip, as far as it can be decompressed. Text over the limit may hold anything.
fn compressed(bytes: &[u8], within: &impl Fn(&str) -> Option<Kind>) -> Option<Kind> {
    let mut content = Vec::new();
    // Of gzip that was cut short there is what stands before the cut.
    let _ = GzDecoder::new(bytes).take(GZIP_MAX + 1).read_to_end(&mut content);
    if content.len() as u64 > GZIP_MAX {
        return Some(Kind::Compressed);
    }
    within(&String::from_utf8_lossy(&content)).or_else(|| is_private_key(&content).then_some(Kind::Key))
}

/// Reports whether this is DER of a private key: a sequence that begins with its version, where a certificate has another sequence.
fn is_private_key(bytes: &[u8]) -> bool {
    let rest = match bytes {
        [0x30, 0x82, _, _, rest @ ..] | [0x30, 0x81, _, rest @ ..] | [0x30, _, rest @ ..] => rest,
        _ => return false,
    };
    bytes.len() >= KEY_MIN && matches!(rest, [0x02, 0x01, 0x00 | 0x01, ..])
}
