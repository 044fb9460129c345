//! Why no endpoint of an export or an import can answer.

use api::{
    condition::{Status, Verdict},
    mcs::NO_READY_ENDPOINTS,
};

/// There is none.
pub const NO_ENDPOINTS: &str = "NoEndpoints";
/// There are some, and none is ready.
pub const NOT_READY: &str = "NotReady";
/// There are some, and none has a port of the Service.
pub const PORT_MISMATCH: &str = "PortMismatch";

/// Why nobody answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// In CamelCase.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Unanswered {
    /// The reason and a sentence.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// As a condition has it.
    pub fn verdict(self) -> Verdict {
        Verdict::new(NO_READY_ENDPOINTS, Status::True, self.reason, self.message)
    }
}

/// An endpoint can answer again.
pub fn answered() -> Verdict {
    Verdict::new(NO_READY_ENDPOINTS, Status::False, "EndpointsReady", "an endpoint can answer")
}
