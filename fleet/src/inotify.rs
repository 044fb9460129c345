//! How many programs of a user may watch files at a time.

use std::fs;

const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";
/// A cluster with a node takes about twenty of Linux' default of 128, and programs that get none fail with errors that do not
/// name the reason.
const NEEDED: u32 = 1024;

/// Raises the limit, which is this machine's, unless it is high enough. It stays when the fleet goes: others may rely
/// on it by then.
pub(crate) fn raise_limit(progress: &impl Fn(&str)) {
    let read = || fs::read_to_string(LIMIT).ok()?.trim().parse::<u32>().ok();
    let Some(was) = read().filter(|was| *was < NEEDED) else { return };
    match fs::write(LIMIT, NEEDED.to_string()) {
        Ok(()) => progress(&format!("raised {LIMIT} from {was} to {NEEDED}")),
        Err(error) => progress(&format!("{LIMIT} is only {was} and cannot be raised: {error}")),
    }
}
