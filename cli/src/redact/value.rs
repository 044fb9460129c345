//! Values of fields that hold credentials: judged by their form.

/// Values that stand in place of a credential.
const PLAIN: [&str; 8] = ["true", "false", "null", "none", "nil", "redacted", "<redacted>", "***"];

/// Shortest credential that has a field of its own.
const MIN: usize = 4;

/// Length from which a word without digits is no word of a sentence.
const LONG: usize = 16;

/// Reports whether the value of a field that holds credentials is one.
pub(super) fn may_be_one(value: &str) -> bool {
    value.len() >= MIN && !is_plain(value)
}

/// Reports whether it says that there is no credential, or that one was cut.
pub(super) fn is_plain(value: &str) -> bool {
    PLAIN.iter().any(|plain| value.eq_ignore_ascii_case(plain)) || value.starts_with("[cut: ")
}

/// Reports whether it may be a word of a sentence, or a name.
pub(super) fn is_word(value: &str) -> bool {
    value.len() < LONG && !value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Reports whether it looks random: a name does not.
pub(super) fn is_random(value: &str) -> bool {
    let has = |what: fn(&u8) -> bool| value.bytes().any(|byte| what(&byte));
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let is_hex = value.len() >= 2 * LONG && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    value.len() >= LONG && is_mixed || is_hex
}
