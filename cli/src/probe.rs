//! `--probe` of `freeport init` and `freeport join`: whether the member connects to endpoints of other clusters. Whoever runs these again
//! without it keeps what was said.

use clap::ValueEnum;
use k8s_openapi::api::core::v1::EnvVar;

use crate::{
    Daemons, Error,
    objects::{PROBE, tells},
    run::Run,
};

/// Whether the member connects to endpoints of other clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Probe {
    /// Now and then, to a few of each.
    On,
    /// Never: who is away keeps its traffic.
    Off,
}

/// A member that runs outside is told by who starts it.
pub(crate) fn check(probe: Option<Probe>, run: &Run) -> Result<(), Error> {
    match (probe, &run.daemons) {
        (Some(_), Daemons::Outside(_)) => Err(Error::Argument(
            "--probe is for a member that runs in its cluster: start freeport-member with --probe instead"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// What the member is told with that.
pub(crate) fn told(mut told: Vec<EnvVar>, probe: Option<Probe>) -> Vec<EnvVar> {
    if let Some(probe) = probe {
        told.retain(|variable| variable.name != PROBE);
        told.extend((probe == Probe::Off).then(|| tells(PROBE, "off")));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_of_probes_stays_until_something_else_is_said() {
        let off = told(vec![], Some(Probe::Off));
        assert_eq!(off, [tells(PROBE, "off")]);
        assert_eq!(told(off.clone(), None), off);
        assert_eq!(told(off.clone(), Some(Probe::Off)), off);
        assert_eq!(told(off, Some(Probe::On)), []);
    }
}
