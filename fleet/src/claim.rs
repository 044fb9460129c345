//! One command at a time in a directory.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::Duration,
};

use tokio::time::sleep;

use crate::{Error, layout::Layout};

/// Makes the directory and keeps other commands away from it while the file is open. The directory itself is
/// locked, so that nothing has to be left behind.
pub(crate) async fn lock(dir: &Path, progress: &impl Fn(&str)) -> Result<File, Error> {
    let mut said = false;
    loop {
        Layout::make_private_dir(dir).map_err(Error::file(dir))?;
        let file = File::open(dir).map_err(Error::file(dir))?;
        match file.try_lock() {
            Ok(()) => {
                let inode = file.metadata().map_err(Error::file(dir))?.ino();
                // The process that held the lock may have removed the directory.
                if fs::metadata(dir).is_ok_and(|now| now.ino() == inode) {
                    return Ok(file);
                }
            }
            Err(TryLockError::Error(source)) => return Err(Error::file(dir)(source)),
            Err(TryLockError::WouldBlock) => {
                if !said {
                    progress(&format!("waiting for another command at work in {}", dir.display()));
                    said = true;
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Whether a directory holds nothing.
pub(crate) fn is_empty(dir: &Path) -> Result<bool, Error> {
    let mut entries = fs::read_dir(dir).map_err(Error::file(dir))?;
    match entries.next() {
        None => Ok(true),
        Some(Ok(_)) => Ok(false),
        Some(Err(error)) => Err::<bool, io::Error>(error).map_err(Error::file(dir)),
    }
}
