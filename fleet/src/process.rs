//! A further process (a daemon) under a fleet's care.

use std::path::{Path, PathBuf};

use tokio::time::{Duration, sleep};

use crate::{
    Error, Exit, Signal,
    keeper::{Client, ClientError, ProcessState, Refusal},
};

/// How often a wait for the end polls.
const POLL: Duration = Duration::from_millis(20);

/// A process that was started by [`crate::Fleet::run`]. Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Process {
    name: String,
    pid: Option<u32>,
    log: PathBuf,
    keeper: Client,
}

impl Process {
    pub(crate) fn new(state: ProcessState, keeper: Client) -> Self {
        Self { name: state.name, pid: state.pid, log: state.log, keeper }
    }

    /// Its name in the fleet.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id as this process sees it.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Its log: what it writes to stdout and stderr.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// SIGTERM, after 25 seconds (10 for a part of a control plane) SIGKILL. Returns how it ended. A process that has
    /// ended before is no error.
    ///
    /// # Errors
    /// [`Error::Keeper`] if the fleet is gone.
    pub async fn stop(&self) -> Result<Exit, Error> {
        gone_is_fine(self.keeper.stop(&self.name).await)?;
        self.wait().await
    }

    /// SIGKILL. Waits for its end. A process that has ended before is no error.
    ///
    /// # Errors
    /// [`Error::Keeper`] if the fleet is gone.
    pub async fn kill(&self) -> Result<Exit, Error> {
        gone_is_fine(self.keeper.signal(&self.name, Signal::Kill).await)?;
        self.wait().await
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// [`Error::Keeper`] if it does not run.
    pub async fn signal(&self, signal: Signal) -> Result<(), Error> {
        Ok(self.keeper.signal(&self.name, signal).await?)
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// [`Error::Keeper`] if the fleet is gone.
    pub async fn is_running(&self) -> Result<bool, Error> {
        Ok(self.exit().await?.is_none())
    }

    /// How it ended; `None` while it runs.
    ///
    /// # Errors
    /// [`Error::Keeper`] if the fleet is gone.
    pub async fn exit(&self) -> Result<Option<Exit>, Error> {
        let state = self.keeper.find(&self.name).await?;
        let state = state.ok_or_else(|| ClientError::from(Refusal::NotRunning(self.name.clone())))?;
        Ok(state.exit)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error::Keeper`] if the fleet is gone.
    pub async fn wait(&self) -> Result<Exit, Error> {
        loop {
            if let Some(exit) = self.exit().await? {
                return Ok(exit);
            }
            sleep(POLL).await;
        }
    }
}

fn gone_is_fine(done: Result<(), ClientError>) -> Result<(), ClientError> {
    match done {
        Err(ClientError::Refused(Refusal::NotRunning(_))) => Ok(()),
        other => other,
    }
}
