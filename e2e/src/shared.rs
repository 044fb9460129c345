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
use tokio::{runtime::Runtime, sync::Mutex, time::timeout};

use crate::{
    harness::record,
    schedule::{How, Place},
    turn,
};

/// All tests of a program run on it, since the clients' connections live on it.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

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
    place: Place,
    make: fn() -> LocalBoxFuture<'static, T>,
    /// Why it could not be made, if it could not: then each test fails at once and says it.
    made: Mutex<Option<Result<&'static T, String>>>,
    /// Tests that wait for it or have it.
    users: AtomicUsize,
}

impl<T: Fixture> Shared<T> {
    /// With so many control planes, of which those with nodes count twice.
    pub const fn new(name: &'static str, planes: usize, make: fn() -> LocalBoxFuture<'static, T>) -> Self {
        let place = Place { name, planes, copies: 1 };
        Self { place, make, made: Mutex::const_new(None), users: AtomicUsize::new(0) }
    }

    /// Runs a test beside others.
    pub fn beside<F: Future<Output = ()>>(&'static self, test: impl FnOnce(&'static T) -> F) {
        self.used(How::Beside, test);
    }

    /// Runs a test beside others, but not beside another one that is run so.
    pub fn one_by_one<F: Future<Output = ()>>(&'static self, test: impl FnOnce(&'static T) -> F) {
        self.used(How::OneByOne, test);
    }

    /// Runs a test while no other one does.
    pub fn alone<F: Future<Output = ()>>(&'static self, test: impl FnOnce(&'static T) -> F) {
        self.used(How::Alone, test);
    }

    /// Runs `test`, and ends the thing afterwards if nobody else needs it.
    fn used<F: Future<Output = ()>>(&'static self, how: How, test: impl FnOnce(&'static T) -> F) {
        self.users.fetch_add(1, Ordering::SeqCst);
        let result = catch_unwind(AssertUnwindSafe(|| {
            RUNTIME.block_on(async {
                let _turn = turn::turn(self.place, how).await;
                in_time(test(self.get().await)).await;
            });
        }));
        RUNTIME.block_on(async {
            let mut made = self.made.lock().await;
            if self.users.fetch_sub(1, Ordering::SeqCst) == 1 && !record::is_kept() {
                turn::lost(self.place);
                if let Some(Ok(made)) = made.take() {
                    made.end().await;
                }
                turn::ended(self.place);
            }
        });
        if let Err(failure) = result {
            resume_unwind(failure);
        }
    }

    /// The thing itself.
    async fn get(&'static self) -> &'static T {
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

/// Runs a test, unless it hangs.
pub(crate) async fn in_time(test: impl Future<Output = ()>) {
    assert!(timeout(LONGEST, test).await.is_ok(), "the test has not ended after {LONGEST:?}");
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}
