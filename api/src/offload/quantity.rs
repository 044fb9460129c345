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
}
