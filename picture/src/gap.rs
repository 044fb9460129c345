//! Why a part of what was asked for is not known.

use std::fmt;

/// One part of what was asked for, or why it is not known.
pub type Seen<T> = Result<T, Gap>;

/// Why a part is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Nobody asked.
    NotLooked,
    /// The API server does not answer, or does not accept the credential: a sentence.
    NoAnswer(String),
    /// A right is missing, in the API server's words.
    Forbidden(String),
    /// The API server does not know the kind.
    NoKind,
    /// Something else, in the API server's words.
    Failed(String),
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLooked => f.write_str("not looked at"),
            Self::NoAnswer(why) => f.write_str(why),
            Self::Forbidden(why) => write!(f, "forbidden: {why}"),
            Self::NoKind => f.write_str("the API server does not know the kind"),
            Self::Failed(why) => write!(f, "cannot be read: {why}"),
        }
    }
}
