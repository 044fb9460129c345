//! Virtual time and seeded randomness for whole programs.
//!
//! `std::time::Instant::now` and `SystemTime::now` (and with it `jiff::Timestamp::now`) call the C library's `clock_gettime`; `RandomState`, uuids and
//! keys of TLS call its `getrandom`. Both symbols are defined here, so daemons and libraries run in virtual time without a change. On all threads
//! that do not simulate, both ask the kernel. Linux only. The one module with `unsafe`.
#![allow(unsafe_code, reason = "symbols of the C library take pointers")]

use std::{cell::Cell, time::Duration};

use libc::{c_int, c_uint, c_void, clockid_t, size_t, ssize_t, timespec};
use tokio::time::Instant;

use crate::random::Random;

/// Unix time at which each simulation starts: 2026-06-01T00:00:00Z.
const START_OF_WALL_CLOCK: Duration = Duration::from_secs(1_780_272_000);
/// What the monotonic clock shows at that time. Not zero, since code subtracts durations from it.
const START_OF_MONOTONIC_CLOCK: Duration = Duration::from_secs(100_000);

thread_local! {
    static SIMULATES: Cell<bool> = const { Cell::new(false) };
    /// When the clock was started, in the paused time of tokio. Without it the clock stands still.
    static STARTED: Cell<Option<Instant>> = const { Cell::new(None) };
    /// `tokio::time::Instant::now` may ask the clock itself.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
    static SHOWN: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static RANDOM: Cell<Random> = const { Cell::new(Random::new(0)) };
}

/// While it lives, its thread simulates.
pub(crate) struct Simulates;

impl Drop for Simulates {
    fn drop(&mut self) {
        SIMULATES.set(false);
    }
}

/// Makes this thread one that simulates: its random numbers come from the seed, and its clocks stand still until [`start`].
pub(crate) fn begin(seed: u64) -> Simulates {
    RANDOM.set(Random::new(seed));
    SHOWN.set(Duration::ZERO);
    STARTED.set(None);
    SIMULATES.set(true);
    Simulates
}

/// Makes the clocks of this thread show the time of tokio, which is paused.
pub(crate) fn start() {
    IS_ASKING.set(true);
    STARTED.set(Some(Instant::now()));
    IS_ASKING.set(false);
}

/// Stops the clocks, before the runtime is dropped.
pub(crate) fn stop() {
    elapsed();
    STARTED.set(None);
}

/// Virtual time since the clock was started.
fn elapsed() -> Duration {
    if !IS_ASKING.get()
        && let Some(started) = STARTED.get()
    {
        IS_ASKING.set(true);
        SHOWN.set(started.elapsed());
        IS_ASKING.set(false);
    }
    SHOWN.get()
}

/// Replaces the C library's function.
///
/// # Safety
/// As for the C library's: `at` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, at: *mut timespec) -> c_int {
    if !SIMULATES.try_with(Cell::get).unwrap_or(false) {
        // SAFETY: as the caller promised.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, at) } as c_int;
    }
    let start = match clock {
        libc::CLOCK_REALTIME => START_OF_WALL_CLOCK,
        _ => START_OF_MONOTONIC_CLOCK,
    };
    let now = start + elapsed();
    // SAFETY: as the caller promised.
    unsafe { *at = timespec { tv_sec: now.as_secs() as i64, tv_nsec: now.subsec_nanos().into() } };
    0
}

/// Replaces the C library's function.
///
/// # Safety
/// As for the C library's: `buffer` has `length` bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
    if !SIMULATES.try_with(Cell::get).unwrap_or(false) {
        // SAFETY: as the caller promised.
        return unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) } as ssize_t;
    }
    // SAFETY: as the caller promised.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    let mut random = RANDOM.get();
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&random.draw().to_le_bytes()[..chunk.len()]);
    }
    RANDOM.set(random);
    length as ssize_t
}
