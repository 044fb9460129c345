//! What several tests use: made by the first one that needs it, and ended after the last one.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::LocalBoxFuture};
use tokio::{
    runtime::Runtime,
    sync::{Mutex, RwLock, Semaphore},
    time::timeout,
};

use crate::harness::{budget, record};

/// All tests of a program run on it, since the clients' connections live on it.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// How many tests use a thing side by side. The test runner starts all tests at once, and two cores serve no more.
const AT_ONCE: usize = 4;
/// More than any test takes, also beside others: one that hangs is to be named before CI is stopped.
const LONGEST: Duration = Duration::from_secs(2400);

/// What tests share.
pub trait Fixture: Sync + 'static {
    /// Directory of its fleet.
    fn dir(&self) -> &Path;

    /// Ends what runs for it: no test needs it any more.
    fn end(&'static self) -> impl Future<Output = ()>;
}

/// Something that several tests use. What it is never goes, since tests hold it, but its processes end with the last test that
/// waits for it: a control plane that nobody needs takes from two cores what others do.
pub struct Shared<T: Fixture> {
    make: fn() -> LocalBoxFuture<'static, T>,
    /// Why it could not be made, if it could not: then each test fails at once and says it.
    made: Mutex<Option<Result<&'static T, String>>>,
    /// Tests that wait for it or have it.
    users: AtomicUsize,
    /// Tests that get along hold it together, those that do not for themselves.
    turn: RwLock<()>,
    at_once: Semaphore,
}

impl<T: Fixture> Shared<T> {
    pub const fn new(make: fn() -> LocalBoxFuture<'static, T>) -> Self {
        Self {
            make,
            made: Mutex::const_new(None),
            users: AtomicUsize::new(0),
            turn: RwLock::const_new(()),
            at_once: Semaphore::const_new(AT_ONCE),
        }
    }

    /// Runs a test beside others.
    pub fn beside<F: Future<Output = ()>>(&'static self, test: impl FnOnce(&'static T) -> F) {
        self.used(async {
            let _one = self.at_once.acquire().await.unwrap();
            let _together = self.turn.read().await;
            in_turn(test(self.get().await)).await;
        });
    }

    /// Runs a test while no other one does.
    pub fn alone<F: Future<Output = ()>>(&'static self, test: impl FnOnce(&'static T) -> F) {
        self.used(async {
            let _nobody = self.turn.write().await;
            in_turn(test(self.get().await)).await;
        });
    }

    fn used(&'static self, test: impl Future<Output = ()>) {
        self.held(|| RUNTIME.block_on(test));
    }

    /// Runs `test`, and ends the thing afterwards if nobody else needs it.
    pub fn held(&'static self, test: impl FnOnce()) {
        self.users.fetch_add(1, Ordering::SeqCst);
        let result = catch_unwind(AssertUnwindSafe(test));
        RUNTIME.block_on(async {
            let mut made = self.made.lock().await;
            if self.users.fetch_sub(1, Ordering::SeqCst) == 1
                && !record::is_kept()
                && let Some(Ok(made)) = made.take()
            {
                made.end().await;
            }
        });
        if let Err(failure) = result {
            resume_unwind(failure);
        }
    }

    /// The thing itself.
    pub async fn get(&'static self) -> &'static T {
        let mut made = self.made.lock().await;
        if made.is_none() {
            let result = AssertUnwindSafe((self.make)()).catch_unwind().await;
            let leak = |thing| &*Box::leak(Box::new(thing));
            *made = Some(result.map(leak).map_err(|panic| said(&*panic)));
        }
        match made.clone().unwrap() {
            Ok(made) => {
                record::uses_fleet(made.dir());
                made
            }
            Err(why) => panic!("what this test uses could not be made: {why}"),
        }
    }
}

/// Runs a test whose turn it is.
pub(crate) async fn in_turn(test: impl Future<Output = ()>) {
    budget::ensure();
    record::turn_begins();
    assert!(timeout(LONGEST, test).await.is_ok(), "the test has not ended after {LONGEST:?}");
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}
