//! Amounts of resources, as Kubernetes writes them: what is offered, and what a virtual node has.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::name;

/// Amounts by the name of the resource, as `cpu`.
pub type Resources = BTreeMap<String, Quantity>;

/// Most bytes of an amount.
const LENGTH_MAX: usize = 64;
/// Most resources.
const COUNT_MAX: usize = 64;

/// Schema of [`Resources`]: numbers, or texts that Kubernetes can read and that are not negative.
pub(super) fn resources(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": COUNT_MAX,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "maxLength": LENGTH_MAX,
            "pattern": r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$",
        },
    })
}

/// Whether an API server would take these as the capacity of a Node; what it would object to otherwise.
pub fn check(resources: &Resources) -> Result<(), String> {
    if resources.len() > COUNT_MAX {
        return Err(format!("there are {} resources; the limit is {COUNT_MAX}", resources.len()));
    }
    resources.iter().try_for_each(|(resource, amount)| {
        if !name::is_qualified_name(resource) {
            return Err(format!("{resource:?} is not the name of a resource"));
        }
        match is_amount(&amount.0) {
            true => Ok(()),
            false => Err(format!("{:?} is not an amount of {resource}", amount.0)),
        }
    })
}

/// Whether Kubernetes reads the text as an amount that is not negative.
fn is_amount(text: &str) -> bool {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let is_number = |b: u8| b.is_ascii_digit() || b == b'.';
    let (number, suffix) =
        unsigned.split_at(unsigned.bytes().position(|b| !is_number(b)).unwrap_or(unsigned.len()));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let exponent = |suffix: &str| {
        let exponent = suffix.strip_prefix(['e', 'E']);
        exponent.is_some_and(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
    };
    let known = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "n", "u", "m", "k", "M", "G", "T", "P", "E"];
    text.len() <= LENGTH_MAX
        && number.bytes().any(|b| b.is_ascii_digit())
        && number.bytes().filter(|b| *b == b'.').count() <= 1
        && (known.contains(&suffix) || exponent(suffix))
}

/// The amount in billionths, as the API server rounds it: up. Nothing if Kubernetes does not read it as one; what is too much for
/// anything counts as the most that there can be.
pub fn nanos(text: &str) -> Option<i128> {
    if !is_amount(text) {
        return None;
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, suffix) = unsigned.split_at(unsigned.find(|c| !is_number(c)).unwrap_or(unsigned.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = &fraction[..fraction.len().min(FRACTION_MAX)];
    let scale = scale(suffix)?;
    let one = fraction.bytes().fold(1, |one, _| one * 10);
    let part = digits(fraction).saturating_mul(scale);
    Some(digits(whole).saturating_mul(scale).saturating_add(part / one + i128::from(part % one > 0)))
}

/// Digits of a fraction that count: with the largest unit they are less than a billionth.
const FRACTION_MAX: usize = 11;

fn digits(text: &str) -> i128 {
    let add = |sum: i128, b: u8| sum.saturating_mul(10).saturating_add(i128::from(b - b'0'));
    text.bytes().fold(0, add)
}

/// Billionths in the unit.
fn scale(suffix: &str) -> Option<i128> {
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(power) = (0_u32..).zip(decimal).find(|(_, unit)| *unit == suffix) {
        return Some(1000_i128.pow(power.0));
    }
    if let Some(power) = (1_u32..).zip(binary).find(|(_, unit)| *unit == suffix) {
        return Some(1024_i128.pow(power.0) * 1_000_000_000);
    }
    let power: i64 = suffix.strip_prefix(['e', 'E'])?.parse().unwrap_or(i64::MAX);
    let power = u32::try_from(power.saturating_add(9).max(0)).unwrap_or(u32::MAX);
    Some(10_i128.checked_pow(power).unwrap_or(i128::MAX))
}

/// Billionths as somebody would write them.
pub fn in_words(nanos: i128) -> String {
    let units = [(1 << 30, "Gi"), (1 << 20, "Mi"), (1, "")].map(|(unit, name)| (unit * 1_000_000_000, name));
    let parts = [(1_000_000, "m"), (1, "n")];
    let mut fitting = units.into_iter().chain(parts).filter(|(unit, _)| nanos % unit == 0);
    fitting
        .next()
        .filter(|_| nanos > 0)
        .map_or("0".to_owned(), |(unit, name)| format!("{}{name}", nanos / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(resource: &str, amount: &str) -> bool {
        check(&[(resource.to_owned(), Quantity(amount.to_owned()))].into()).is_ok()
    }

    #[test]
    fn only_what_a_node_can_have_is_a_resource() {
        for good in ["4", "0", "0.5", ".5", "1.", "500m", "8Gi", "20E", "1e3", "1E-3", "+4"] {
            assert!(checked("cpu", good), "{good}");
        }
        for bad in ["", "-1", "Gi", ".", "1.2.3", "8gi", "8 Gi", "1e", "e3", "1ee3", "NaN", &"1".repeat(65)] {
            assert!(!checked("cpu", bad), "{bad}");
        }
        assert!(checked("nvidia.com/gpu", "2") && !checked("a b", "2"));
        let many = (0..65).map(|n| (format!("r{n}"), Quantity("1".into()))).collect();
        assert!(check(&many).unwrap_err().contains("65"));
    }

    #[test]
    fn an_amount_is_the_same_however_it_is_written() {
        for (one, other) in [
            ("0.1", "100m"),
            ("1.5Gi", "1536Mi"),
            ("1k", "1000"),
            ("1e3", "1000"),
            ("5E-1", "500m"),
            (".5", "+0.50"),
            ("1.", "1000000u"),
            ("1E", "1000P"),
            ("0.1n", "1n"),
        ] {
            assert_eq!(nanos(one), nanos(other), "{one} {other}");
        }
        assert_eq!(nanos("1m"), Some(1_000_000));
        assert!(nanos("1Ki") > nanos("1k") && nanos("0") == Some(0));
        assert_eq!(nanos("1e400"), Some(i128::MAX));
        assert_eq!(nanos(&"9".repeat(60)), Some(i128::MAX));
        assert_eq!((nanos("x"), nanos("-1"), nanos("")), (None, None, None));
        for (amount, words) in
            [("4", "4"), ("3500m", "3500m"), ("8192Mi", "8Gi"), ("0.5Gi", "512Mi"), ("0", "0"), ("7n", "7n")]
        {
            assert_eq!(in_words(nanos(amount).unwrap()), words);
        }
    }
}
