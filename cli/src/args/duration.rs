//! Lengths of time, as Go's programs write them.

use std::time::Duration;

/// Reads `15s`, `2m`, `1h` or `1m30s`; a number alone is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no length of time: write 90, 90s, 2m, 1m30s or 1h");
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let (mut rest, mut sum) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let (number, unit) =
            rest.find(|c: char| !c.is_ascii_digit()).map(|at| rest.split_at(at)).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let units = [("s", 1), ("m", 60), ("h", 3600)];
        let (name, seconds) = units.into_iter().find(|(name, _)| unit.starts_with(name)).ok_or_else(wrong)?;
        let part = number.checked_mul(seconds).map(Duration::from_secs);
        sum = part.and_then(|part| sum.checked_add(part)).ok_or_else(wrong)?;
        rest = &unit[name.len()..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_units_or_is_in_seconds() {
        for (text, seconds) in [("0", 0), ("15", 15), ("15s", 15), ("2m", 120), ("1m30s", 90), ("1h", 3600)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "s",
            "15x",
            "15ms",
            "m15",
            "-1",
            "1.5s",
            " 15s",
            "1m30",
            "99999999999999999999s",
            "9999999999999999999h",
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains("1m30s"), "{text}: {error}");
        }
    }
}
