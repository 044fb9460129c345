//! Lengths of time as Go writes them in JSON: `5m0s`, `720h0m0s`, `1.5s`, `100ms`.

use std::{fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time that is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(pub Duration);

/// Nanoseconds of Go's units; the longer name first where one begins with another.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Most nanoseconds that Go holds.
const MOST: u128 = i64::MAX as u128;

impl FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is not a duration such as 5m0s");
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest == "0" {
            return Ok(Self::default());
        }
        let mut nanos = 0_u128;
        if rest.is_empty() {
            return Err(invalid());
        }
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
            let (number, after) = rest.split_at(end);
            let unit = UNITS.iter().find(|(name, _)| {
                after.strip_prefix(name).is_some_and(|after| !after.starts_with(char::is_alphabetic))
            });
            let (name, unit) = unit.ok_or_else(invalid)?;
            nanos += amount(number, *unit).ok_or_else(invalid)?;
            rest = &after[name.len()..];
        }
        match u64::try_from(nanos) {
            Ok(nanos) if u128::from(nanos) <= MOST => Ok(Self(Duration::from_nanos(nanos))),
            _ => Err(invalid()),
        }
    }
}

impl GoDuration {
    /// For how long a token is to count: API servers give none for less than ten minutes.
    ///
    /// # Errors
    /// A sentence.
    pub fn of_token(text: &str) -> Result<Self, String> {
        let lifetime: Self = text.parse()?;
        if lifetime.0.as_secs() < 600 { Err("must be 10m or more".to_owned()) } else { Ok(lifetime) }
    }
}

/// So many of a unit, in nanoseconds.
fn amount(number: &str, unit: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    // More digits than that say less than a nanosecond.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u128::from(digits(fraction)?) * u128::from(unit) / scale;
    Some(u128::from(digits(whole)?) * u128::from(unit) + part)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let unit = match nanos {
            0 => return f.write_str("0s"),
            1..1_000 => return write!(f, "{nanos}ns"),
            1_000..1_000_000 => return write!(f, "{}\u{b5}s", decimal(nanos, 1_000)),
            1_000_000..1_000_000_000 => return write!(f, "{}ms", decimal(nanos, 1_000_000)),
            _ => 1_000_000_000,
        };
        let (minutes, rest) = (nanos / (60 * unit), nanos % (60 * unit));
        if minutes >= 60 {
            write!(f, "{}h", minutes / 60)?;
        }
        if minutes > 0 {
            write!(f, "{}m", minutes % 60)?;
        }
        write!(f, "{}s", decimal(rest, unit))
    }
}

/// As a decimal number of units, without zeros at the end.
fn decimal(nanos: u128, unit: u128) -> String {
    let (whole, part) = (nanos / unit, nanos % unit);
    let width = unit.ilog10() as usize;
    let number = format!("{whole}.{part:0width$}");
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_go_writes_it() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1\u{b5}s"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (300_000_000_000, "5m0s"),
            (245_000_000_000, "4m5s"),
            (18_366_000_000_000, "5h6m6s"),
            (2_592_000_000_000_000, "720h0m0s"),
            (480_000_000_001, "8m0.000000001s"),
            (i64::MAX as u64, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(GoDuration(Duration::from_nanos(nanos)).to_string(), text);
            assert_eq!(text.parse(), Ok(GoDuration(Duration::from_nanos(nanos))));
        }
    }

    #[test]
    fn as_go_reads_it() {
        for (text, nanos) in [
            ("0", 0),
            ("+5s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("7us", 7_000),
            ("10m10m", 1_200_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(GoDuration(Duration::from_nanos(nanos))), "{text}");
        }
        for odd in ["", "5", "s", ".s", "5x", "-5s", "5 m", "2562047h47m17s", "99999999999999999999h", "1mx"]
        {
            assert!(odd.parse::<GoDuration>().is_err(), "{odd}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(nanos in 0..=i64::MAX as u64) {
            let duration = GoDuration(Duration::from_nanos(nanos));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,30}") {
            let _ = text.parse::<GoDuration>();
        }
    }
}
