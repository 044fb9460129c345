//! Whose wire contract is of another version than ours, by the table of Leases.

use std::collections::BTreeMap;

use api::label;

use crate::leases::Leases;

impl Leases {
    /// Who takes part and speaks another version of the wire contract: which, by the names of their Leases. Who says nothing about
    /// it speaks ours.
    pub fn foreign(&self) -> BTreeMap<String, String> {
        let there = self.standings().filter(|(_, heard)| !heard.left);
        let foreign = there.filter_map(|(name, heard)| Some((name.to_owned(), heard.wire.clone()?)));
        foreign.filter(|(_, wire)| wire != label::WIRE_VERSION).collect()
    }
}

/// What is said of those who speak another version.
pub fn differs(foreign: &BTreeMap<String, String>) -> String {
    let foreign: Vec<_> = foreign.iter().map(|(lease, wire)| format!("{lease}: {wire:.32}")).collect();
    format!(
        "exports and imports go on, but daemons of this set use different versions of the wire contract: this one {}, and by their \
         Leases {}. Fields that only one of two versions knows do not travel between them. Install the same version of Freeport in all \
         clusters",
        label::WIRE_VERSION,
        foreign.join(", ")
    )
}
