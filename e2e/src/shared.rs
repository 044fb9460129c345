//! What several tests use: made by the first one that needs it, and ended after the last one.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::LazyLock,
};

use fleet::Fleet;
use futures::{FutureExt, future::LocalBoxFuture};
use tokio::{runtime::Runtime, sync::Mutex, time::timeout_at};

use crate::{
    ground,
    harness::{budget, record},
    schedule::{Place, Sharing},
    turn,
};

/// All tests of a program run on it, since the clients' connections live on it.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// What tests share.
pub trait Fixture: Sync + 'static {
    /// Directory of its fleet.
    fn dir(&self) -> &Path;
}

/// A test, which uses a thing of type `T`.
pub type Test<'a, T> = Box<dyn FnOnce(&'static T) -> LocalBoxFuture<'a, ()> + 'a>;

/// Something that several tests use. What it is never goes, since tests hold it, but its processes end with the last test that
/// waits for it: a control plane that nobody needs takes from two cores what others do.
pub struct Shared<T: Fixture> {
    place: Place,
    make: fn() -> LocalBoxFuture<'static, T>,
    /// Runs a test on the simulated ground.
    simulate: Option<for<'a> fn(Test<'a, T>)>,
    /// Why it could not be made, if it could not: then each test fails at once and says it.
    made: Mutex<Option<Result<&'static T, String>>>,
}

impl<T: Fixture> Shared<T> {
    /// With so many control planes, of which those with nodes count twice.
    pub const fn new(name: &'static str, planes: usize, make: fn() -> LocalBoxFuture<'static, T>) -> Self {
        let place = Place { name, planes, copies: 1 };
        Self { place, make, simulate: None, made: Mutex::const_new(None) }
    }

    /// On the simulated ground, `simulate` runs each test with a thing of its own.
    pub const fn simulated(mut self, simulate: for<'a> fn(Test<'a, T>)) -> Self {
        self.simulate = Some(simulate);
        self
    }

    /// Runs a test beside others.
    pub fn beside<'a, F: Future<Output = ()> + 'a>(&'static self, test: impl FnOnce(&'static T) -> F + 'a) {
        self.used(Sharing::Beside, test);
    }

    /// Runs a test beside others, but not beside another one that is run so.
    pub fn one_by_one<'a, F: Future<Output = ()> + 'a>(
        &'static self,
        test: impl FnOnce(&'static T) -> F + 'a,
    ) {
        self.used(Sharing::OneByOne, test);
    }

    /// Runs a test while no other one does.
    pub fn alone<'a, F: Future<Output = ()> + 'a>(&'static self, test: impl FnOnce(&'static T) -> F + 'a) {
        self.used(Sharing::Alone, test);
    }

    /// Runs `test`, and ends the thing afterwards if nobody else needs it.
    fn used<'a, F: Future<Output = ()> + 'a>(
        &'static self,
        sharing: Sharing,
        test: impl FnOnce(&'static T) -> F + 'a,
    ) {
        if ground::is_simulated() {
            let Some(simulate) = self.simulate else { panic!("{} is not simulated", self.place.name) };
            return simulate(Box::new(move |made| Box::pin(test(made))));
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            RUNTIME.block_on(async {
                let _turn = turn::turn(self.place, sharing).await;
                let made = self.get().await;
                in_time(test(made)).await;
            });
        }));
        RUNTIME.block_on(async {
            let unused = turn::take_unused(self.place);
            if unused.is_some()
                && let Some(Ok(made)) = self.made.lock().await.take()
            {
                end_fleet(made.dir()).await;
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
            let leak = |thing| &*Box::leak(Box::new(thing));
            *made = Some(make((self.make)()).await.map(leak).map_err(|panic| panic_text(&*panic)));
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

/// Runs a test that makes its own, which ends with it.
pub fn with_own<T: Fixture, F: Future<Output = ()>>(
    place: Place,
    made: impl Future<Output = T>,
    test: impl FnOnce(&'static T) -> F,
) {
    RUNTIME.block_on(async {
        let _turn = turn::turn_for_own(place).await;
        let made = make(made).await.unwrap_or_else(|panic| resume_unwind(panic));
        let made: &'static T = Box::leak(Box::new(made));
        let result = AssertUnwindSafe(in_time(test(made))).catch_unwind().await;
        end_fleet(made.dir()).await;
        if let Err(failure) = result {
            resume_unwind(failure);
        }
    });
}

/// Makes something. If that fails or hangs, the fleets that were begun for it are taken down.
pub(crate) async fn make<T>(made: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let before = record::fleets();
    let made = AssertUnwindSafe(in_time(made)).catch_unwind().await;
    if made.is_err() {
        for dir in record::fleets().difference(&before) {
            end_fleet(dir).await;
        }
    }
    made
}

/// Ends the processes of a fleet, and removes its files unless they are kept.
pub(crate) async fn end_fleet(dir: &Path) {
    let ended = if record::is_kept() { Fleet::stop(dir).await } else { Fleet::down(dir, |_| {}).await };
    if let Err(error) = ended {
        crate::note!("{}: {error}", dir.display());
    }
}

/// Runs a test, or a part of it, and fails if it has not ended when the time of the program has.
pub async fn in_time<T>(test: impl Future<Output = T>) -> T {
    let ended = timeout_at(budget::deadline(), test).await;
    ended.unwrap_or_else(|_| panic!("the test has not ended, and {}", budget::spent()))
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}
