//! What a leader takes in of one member, and how its Lease says so.

use std::fmt;

/// What a member may have in a Common Area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Most records.
    pub records: usize,
    /// Most bytes of all of them, as JSON or in the memory of importers, whichever is more.
    pub bytes: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self { records: 5000, bytes: 64 << 20 }
    }
}

impl Quota {
    /// Reads annotation [`QUOTA`](crate::label::QUOTA) of a leader's Lease.
    pub fn said(text: &str) -> Option<Self> {
        let (records, bytes) = text.split_once(' ')?;
        Some(Self { records: records.parse().ok()?, bytes: bytes.parse().ok()? })
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.records, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        let quota = Quota { records: 3, bytes: 1000 };
        assert_eq!(Quota::said(&quota.to_string()), Some(quota));
        for odd in ["", "3", "3 x", "-1 3", "3 1000 1", "99999999999999999999999 1"] {
            assert_eq!(Quota::said(odd), None, "{odd}");
        }
    }
}
