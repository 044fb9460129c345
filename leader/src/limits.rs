//! What a member may have in a Common Area: beyond that it takes memory from all others.

use api::quota::Quota;

/// What a member may have.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most records of a member in a Common Area. Beyond that its newest ones are refused (`OverQuota`).
    #[arg(
        id = "max-records-per-member",
        long = "max-records-per-member",
        env = "FREEPORT_MAX_RECORDS_PER_MEMBER",
        value_name = "NUMBER",
        default_value_t = Quota::default().records
    )]
    pub records: usize,
    /// Most bytes of all records of a member in a Common Area, as JSON or in the memory of importers, whichever is more; with a unit
    /// as in 64Mi or without. Beyond that its newest ones are refused (`OverQuota`).
    #[arg(id = "max-bytes-per-member", long = "max-bytes-per-member", env = "FREEPORT_MAX_BYTES_PER_MEMBER", value_name = "BYTES", default_value = "64Mi", value_parser = bytes)]
    pub bytes: usize,
}

impl From<Limits> for Quota {
    fn from(Limits { records, bytes }: Limits) -> Self {
        Self { records, bytes }
    }
}

/// A number of bytes as Kubernetes spells it: `1000`, `64Ki`, `64Mi`, `1Gi`.
fn bytes(text: &str) -> Result<usize, String> {
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)];
    let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((text, 1));
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| "must be a number of bytes, as 1000000, 512Ki, 64Mi or 1Gi".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Args {
        #[command(flatten)]
        limits: Limits,
    }

    #[test]
    fn sizes_have_the_units_of_kubernetes() {
        let limits = |args: &[&str]| {
            let args = ["x"].iter().chain(args).copied();
            Args::try_parse_from(args)
                .map(|args| (args.limits.records, args.limits.bytes))
                .map_err(|e| e.to_string())
        };
        let usual = Quota::default();
        assert_eq!(limits(&[]), Ok((usual.records, usual.bytes)));
        assert_eq!(limits(&["--max-bytes-per-member", "3Ki", "--max-records-per-member=2"]), Ok((2, 3072)));
        assert_eq!(limits(&["--max-bytes-per-member=1000"]), Ok((5000, 1000)));
        for bad in ["64M", "", "Mi", "99999999999Gi"] {
            let error = limits(&["--max-bytes-per-member", bad]).unwrap_err();
            assert!(error.contains("max-bytes-per-member"), "{error}");
        }
    }
}
