//! The life of a daemon whose requests pass by here: its processes one after the other, and the trap that ends one.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use http::{Method, Uri};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    shared::RUNTIME,
    trap::{Side, Trap, is_write},
    world::World,
};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Passes,
    /// Its sender is dead, or as good as dead.
    Lost,
    /// Its sender is to be [killed](Life::end).
    Kills(Side),
}

/// A write at which a daemon was killed.
#[derive(Clone, Debug)]
pub struct Fall {
    /// As [`named`](crate::trap::named).
    pub write: String,
    /// What the API server answered.
    pub answer: String,
}

impl fmt::Display for Fall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.write, self.answer)
    }
}

/// A daemon's life.
pub struct Life {
    world: &'static World,
    daemon: String,
    state: Mutex<State>,
    /// Where the process that ran last was killed, or why it was not.
    fell: watch::Sender<Option<Result<Fall, String>>>,
    /// The connection that a request came by ends with its sender, and with the connection what is done for the request. This goes on.
    kills: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    /// Which process runs, counted from the start of the test.
    process: u64,
    /// Nothing that it still sends shall arrive.
    is_dying: bool,
    trap: Option<Trap>,
}

impl Life {
    pub fn new(world: &'static World, daemon: &str) -> Self {
        Self {
            world,
            daemon: daemon.to_owned(),
            state: Mutex::default(),
            fell: watch::Sender::new(None),
            kills: Mutex::default(),
        }
    }

    /// Which process runs: requests are told apart by it.
    pub fn process(&self) -> u64 {
        self.state().process
    }

    /// What becomes of a request of this process.
    pub fn judge(&self, process: u64, method: &Method, uri: &Uri, body: &[u8]) -> Fate {
        let mut state = self.state();
        if !is_write(method) {
            return Fate::Passes;
        }
        if state.is_dying || process != state.process {
            return Fate::Lost;
        }
        match state.trap.as_mut().and_then(|trap| trap.springs(method, uri, body)) {
            None => Fate::Passes,
            Some(side) => {
                (state.trap, state.is_dying) = (None, true);
                Fate::Kills(side)
            }
        }
    }

    /// Kills the process, at this write.
    pub async fn end(&self, fall: Fall) {
        let (world, daemon, fell) = (self.world, self.daemon.clone(), self.fell.clone());
        let kill = async move {
            let killed = kill(world, &daemon).await;
            fell.send_replace(Some(
                killed.map(|()| fall).map_err(|why| format!("{daemon} cannot be killed: {why}")),
            ));
        };
        lock(&self.kills).spawn_on(kill, RUNTIME.handle());
        // The test is told what became of it.
        drop(self.outcome().await);
    }

    /// Sets the trap, in place of another.
    pub fn set(&self, trap: Trap) {
        self.state().trap = Some(trap);
    }

    /// Takes the trap away; where it has killed, if it has.
    pub async fn disarm(&self) -> Option<Fall> {
        let is_dying = {
            let mut state = self.state();
            state.trap = None;
            state.is_dying
        };
        if is_dying { Some(self.falls().await) } else { None }
    }

    /// Waits until the trap has killed; where it did.
    pub async fn falls(&self) -> Fall {
        self.outcome().await.unwrap()
    }

    async fn outcome(&self) -> Result<Fall, String> {
        let mut fell = self.fell.subscribe();
        let fell = fell.wait_for(Option::is_some).await.unwrap();
        fell.clone().unwrap()
    }

    /// Where the process was killed, if it was.
    pub fn fell(&self) -> Option<Fall> {
        let fell = self.fell.borrow().clone();
        fell.transpose().unwrap()
    }

    /// Another process is about to be started.
    pub fn renew(&self) {
        let mut state = self.state();
        (state.process, state.is_dying) = (state.process + 1, false);
        self.fell.send_replace(None);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

async fn kill(world: &World, daemon: &str) -> Result<(), String> {
    let process = world.real().fleet.process(daemon).await.map_err(|error| error.to_string())?;
    let process = process.ok_or("it does not run")?;
    process.kill().await.map(drop).map_err(|error| error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
