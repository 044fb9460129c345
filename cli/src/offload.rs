//! Offloading: installing what it needs, and `freeport offload` and `freeport unoffload`.
//!
//! | module | holds |
//! |---|---|
//! | `install` | what `--offload` of `freeport init` and `freeport join` adds |

mod install;

pub(crate) use self::install::{check, is_without_liqo, leader_lacks_records};

/// How offloading is set up, where it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offloading {
    /// URL of `freeport-webhook` as the API server reaches it, where the daemons run outside of the cluster. Without it nothing asks the
    /// webhook there.
    pub webhook_url: Option<String>,
}
