//! The steps from the exporters of a Service to an importer.

/// A step, in the order of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Importer and exporters are members, and connected with the leader.
    Set,
    /// Somebody exports the Service, and can.
    Export,
    /// The Common Area has the exports.
    Record,
    /// The leader merged them, and they agree.
    Merge,
    /// The importer has the Service.
    Import,
    /// Somebody answers.
    Endpoints,
    /// CoreDNS of the importer gives the Service its name.
    Dns,
}

impl Step {
    /// All of them, in their order.
    pub const ALL: [Self; 7] =
        [Self::Set, Self::Export, Self::Record, Self::Merge, Self::Import, Self::Endpoints, Self::Dns];

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Export => "export",
            Self::Record => "record",
            Self::Merge => "merge",
            Self::Import => "import",
            Self::Endpoints => "endpoints",
            Self::Dns => "dns",
        }
    }
}
