//! How a command carries out what it is to do.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;

use crate::Error;

/// How a command carries out what it is to do.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where the daemons run.
    pub daemons: Daemons,
    /// Only these parts; empty: all.
    pub only: Vec<Part>,
    /// Wait until the daemons say that they are ready, when they run inside.
    pub wait: bool,
    /// Limit of each wait.
    pub timeout: Duration,
    /// Hand each object to the progress callback as a YAML document instead of applying it.
    pub dry_run: bool,
    /// Prints a line beside the progress, which may be a YAML document.
    pub aside: fn(&str),
}

impl Run {
    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        (self.aside)(&format!("warning: {text}"));
    }

    /// Whether a part is wanted.
    pub(crate) fn does(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// A dry run of a join prints the objects of one cluster: nobody can apply both halves in one go.
    pub(crate) fn is_of_one_cluster(&self) -> Result<(), Error> {
        let both = self.does(Part::Leader) && (self.does(Part::Crds) || self.does(Part::Member));
        if self.dry_run && both {
            return Err(Error::Argument(
                "--dry-run: a join is about two clusters, each with objects of its own; add --only leader, --only crds or \
                 --only member"
                    .into(),
            ));
        }
        Ok(())
    }
}

/// Where the daemons run.
#[derive(Clone, Debug)]
pub enum Daemons {
    /// In their clusters, as Deployments of this image.
    Inside {
        /// Which holds both daemons; none: the one the Deployment has, or that of this version.
        image: Option<String>,
        /// How many Pods of each daemon run, of which one is active; none: as many as the Deployment has, or one.
        replicas: Option<u8>,
    },
    /// Elsewhere, with kubeconfigs written into this folder.
    Outside(PathBuf),
}

/// A part of what a command installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// CustomResourceDefinitions, which have to be there before objects of their kinds.
    Crds,
    /// What the leader's cluster needs to lead, and to give a member access.
    Leader,
    /// What the member's cluster needs.
    Member,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_prints_the_objects_of_one_cluster() {
        let run = |only: &[Part], dry_run| Run {
            daemons: Daemons::Inside { image: None, replicas: None },
            only: only.into(),
            wait: true,
            timeout: Duration::ZERO,
            dry_run,
            aside: |_| {},
        };
        for only in [&[Part::Leader][..], &[Part::Crds], &[Part::Member], &[Part::Crds, Part::Member]] {
            assert!(run(only, true).is_of_one_cluster().is_ok(), "{only:?}");
        }
        for only in [&[][..], &[Part::Leader, Part::Member], &[Part::Leader, Part::Crds]] {
            let error = run(only, true).is_of_one_cluster().unwrap_err();
            assert!(matches!(error, Error::Argument(_)), "{error}");
            assert!(run(only, false).is_of_one_cluster().is_ok(), "{only:?}");
        }
    }
}
