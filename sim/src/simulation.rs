//! Runs a future in virtual time, with everything random drawn from a seed.

use tokio::runtime::{Builder, RngSeed};

use crate::clock;

/// Bytes of stack of a thread that simulates: futures of whole daemons are large where they are not optimized.
pub const STACK: usize = 64 << 20;

/// Runs `simulation` on a thread of its own, in virtual time. The same seed gives the same run.
///
/// Panics as the simulation does.
pub fn simulate<T, F>(seed: u64, simulation: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let thread = std::thread::Builder::new().name(format!("seed {seed}")).stack_size(STACK);
    match thread.spawn(move || here(seed, simulation)) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => panic!("no thread for a simulation: {error}"),
    }
}

/// Runs `simulation` on this thread, which simulates until it has ended.
pub fn here<T, F: Future<Output = T>>(seed: u64, simulation: impl FnOnce() -> F) -> T {
    let _simulates = clock::begin(seed);
    let mut runtime = Builder::new_current_thread();
    runtime.enable_time().start_paused(true).rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()));
    let runtime = match runtime.build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime for a simulation: {error}"),
    };
    runtime.block_on(async {
        clock::start();
        let result = simulation().await;
        clock::stop();
        result
    })
}
