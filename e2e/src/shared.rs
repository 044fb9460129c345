//! What several tests use: made by the first one that needs it.

use std::{any::Any, panic::AssertUnwindSafe, sync::LazyLock, time::Instant};

use futures::{FutureExt, future::LocalBoxFuture};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, RwLock, Semaphore},
};

/// All tests of a program run on it, since the clients' connections live on it.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// How many tests use a thing side by side. The test runner starts all tests at once, and two cores serve no more.
const AT_ONCE: usize = 6;

/// Something that several tests use. Never dropped: a fleet ends with this process, whatever ends it.
pub struct Shared<T> {
    make: fn() -> LocalBoxFuture<'static, T>,
    /// Why it could not be made, if it could not: then each test fails at once and says it.
    made: OnceCell<Result<T, String>>,
    /// Tests that get along hold it together, those that do not for themselves.
    turn: RwLock<()>,
    at_once: Semaphore,
}

impl<T> Shared<T> {
    pub const fn new(make: fn() -> LocalBoxFuture<'static, T>) -> Self {
        Self {
            make,
            made: OnceCell::const_new(),
            turn: RwLock::const_new(()),
            at_once: Semaphore::const_new(AT_ONCE),
        }
    }

    /// Runs a test beside others.
    pub fn beside<F: Future<Output = ()>>(&'static self, test: impl FnOnce(&'static T) -> F) {
        RUNTIME.block_on(async {
            let _one = self.at_once.acquire().await.unwrap();
            let _together = self.turn.read().await;
            timed(test(self.get().await)).await;
        });
    }

    /// Runs a test while no other one does.
    pub fn alone<F: Future<Output = ()>>(&'static self, test: impl FnOnce(&'static T) -> F) {
        RUNTIME.block_on(async {
            let _nobody = self.turn.write().await;
            timed(test(self.get().await)).await;
        });
    }

    /// The thing itself.
    pub async fn get(&'static self) -> &'static T {
        let make =
            async || AssertUnwindSafe((self.make)()).catch_unwind().await.map_err(|panic| said(&*panic));
        match self.made.get_or_init(make).await {
            Ok(made) => made,
            Err(why) => panic!("what this test uses could not be made: {why}"),
        }
    }
}

/// Runs a test whose turn it is, and prints how long it took: what the test runner says includes the time before.
pub(crate) async fn timed(test: impl Future<Output = ()>) {
    let begun = Instant::now();
    test.await;
    eprintln!("the test itself took {:.1} s", begun.elapsed().as_secs_f64());
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}
