//! One daemon of a ClusterSet, as a process of the fleet.

use std::{fs, net::SocketAddr, path::Path};

use api::label;
use sha2::{Digest, Sha256};

use super::Error;
use crate::{Fleet, Process, ProcessSpec, ports, started::Started};

/// Distinguishes a daemon that has the current credential from one that was started with an earlier one.
const CREDENTIAL: &str = "KUBECONFIG_SHA256";
const LISTEN: &str = "--listen";

/// A daemon of the set.
#[derive(Clone, Debug)]
pub struct Daemon {
    /// The cluster it serves.
    pub cluster: String,
    /// Whether it is the cluster's member, not its leader.
    pub is_member: bool,
    /// How it is started.
    pub spec: ProcessSpec,
    /// Where its `/metrics` is.
    pub listen: SocketAddr,
}

/// What [`Daemon::ensure`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ensured {
    /// It did not run.
    Started,
    /// One ran with another program, other arguments or another credential.
    Restarted,
    /// It ran already.
    Running,
}

impl Daemon {
    /// `kind` for `cluster`, listening where it did if it runs.
    pub(super) async fn plan(
        fleet: &Fleet,
        kind: &str,
        cluster: &str,
        program: &Path,
        kubeconfig: &Path,
    ) -> Result<Self, Error> {
        let name = format!("{kind}-{cluster}");
        let before = running(fleet, &name).await?.flatten();
        let listen = match before.and_then(|started| started.value_of(LISTEN)?.parse().ok()) {
            Some(listen) => listen,
            None => ports::free_address().map_err(Error::Port)?,
        };
        let credential = fs::read(kubeconfig).map_err(crate::Error::file(kubeconfig))?;
        let spec = ProcessSpec::new(name, program)
            .args(["--kubeconfig".to_owned(), kubeconfig.display().to_string()])
            .args([LISTEN.to_owned(), listen.to_string()])
            .env(CREDENTIAL, format!("{:x}", Sha256::digest(credential)));
        Ok(Self { cluster: cluster.to_owned(), is_member: kind == label::MEMBER, spec, listen })
    }

    /// Starts it; one of that name that runs already is stopped first.
    ///
    /// # Errors
    /// [`Error::Fleet`].
    pub async fn start(&self, fleet: &Fleet) -> Result<Process, Error> {
        if let Some(running) = fleet.process(&self.spec.name).await? {
            running.stop().await?;
        }
        Ok(fleet.run(self.spec.clone()).await?)
    }

    /// Starts it unless it runs just so: the same program file, arguments and credential.
    ///
    /// # Errors
    /// [`Error::Fleet`].
    pub async fn ensure(&self, fleet: &Fleet) -> Result<Ensured, Error> {
        let done = match running(fleet, &self.spec.name).await? {
            Some(Some(started)) if started.matches(&self.spec) => return Ok(Ensured::Running),
            Some(_) => Ensured::Restarted,
            None => Ensured::Started,
        };
        self.start(fleet).await?;
        Ok(done)
    }
}

/// Whether a process of that name runs, and with what it was started, if that is known.
async fn running(fleet: &Fleet, name: &str) -> Result<Option<Option<Started>>, Error> {
    match fleet.process(name).await? {
        Some(process) if process.is_running().await? => {
            Ok(Some(process.pid().and_then(|pid| Started::of(pid).ok())))
        }
        _ => Ok(None),
    }
}
