//! One process at a time writes to a directory of the cache.

use std::{
    fs::{File, TryLockError},
    io::{self, IsTerminal},
    path::Path,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::Error;

/// The lock of a directory. Released when the file is dropped, and by the kernel when this process dies.
pub(super) async fn lock(dir: &Path, progress: &impl Fn(&str)) -> Result<File, Error> {
    let path = dir.join("lock");
    let failed = Error::cache(&path);
    let file = match File::options().create(true).write(true).truncate(false).open(&path) {
        Ok(file) => file,
        Err(error) => return Err(failed(error)),
    };
    let mut said: Option<Instant> = None;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if said.is_some_and(|said| said.elapsed() < interval()) => {}
            Err(TryLockError::WouldBlock) => {
                progress("another process is getting the Kubernetes programs; waiting for it");
                said = Some(Instant::now());
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// How often progress is reported.
pub(super) fn interval() -> Duration {
    Duration::from_secs(if io::stderr().is_terminal() { 10 } else { 30 })
}
