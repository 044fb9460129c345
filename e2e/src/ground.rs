//! The two grounds of tests: programs that run on this machine, and tasks of this process in virtual time.

use std::{
    cell::Cell,
    io,
    panic::resume_unwind,
    sync::{Arc, Condvar, Mutex, PoisonError},
};

use sim::simulation::STACK;
use tracing_subscriber::fmt::MakeWriter;

/// Lines of the daemons' log in failure messages.
const LAST_LINES: usize = 30;

thread_local! {
    /// Whether the test that this thread runs is on the simulated ground.
    static IS_SIMULATED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `test` on a thread with a stack of its own, on the simulated ground. At most one for each core run at once: they wait for nothing.
pub(crate) fn simulated<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    let _slot = Slot::take();
    on_own_stack(test)
}

/// Runs `test` on a thread with a stack of its own, on the simulated ground.
pub(crate) fn on_own_stack<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
            IS_SIMULATED.set(true);
            test()
        });
        thread.unwrap().join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Whether the test that this thread runs is on the simulated ground.
pub fn is_simulated() -> bool {
    IS_SIMULATED.get()
}

/// What the daemons of a test log. Cloning shares it.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All of it; it starts anew.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last lines of all daemons.
    pub fn tail(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes()).into_owned();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// One of the few tests that run on this ground at once.
struct Slot;

static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

impl Slot {
    fn take() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let running = RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = RUNNING.1.wait_while(running, |running| *running >= cores);
        *free.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        RUNNING.1.notify_one();
    }
}
