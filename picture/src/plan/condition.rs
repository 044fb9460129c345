//! A condition as it is shown.

use api::{condition::Verdict, mcs::READY};
use serde::{Serialize, Serializer};

/// A condition, as `-o json` has it.
#[derive(Serialize)]
struct Said<'a> {
    #[serde(rename = "type")]
    type_: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

pub(super) fn serialized<S: Serializer>(all: &[Verdict], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|said| Said {
        type_: said.type_,
        status: said.status.as_str(),
        reason: &said.reason,
        message: &said.message,
    }))
}

/// Returns the condition as text for people.
pub(super) fn words(said: &Verdict) -> String {
    let name = said.type_.rsplit('/').next().unwrap_or(READY);
    format!("{name} {} {}: {}", said.status.as_str(), said.reason, said.message)
}
