//! How much room is left.

use std::{io, path::Path};

use nix::sys::statvfs::statvfs;

/// Mebibytes this user may still write to the disk that holds `path`.
pub(crate) fn free_mib(path: &Path) -> io::Result<u64> {
    let disk = statvfs(path)?;
    Ok(disk.blocks_available().saturating_mul(disk.fragment_size()) / (1024 * 1024))
}
