//! How a command carries out what it is to do.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;

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
}

impl Run {
    /// Whether a part is wanted.
    pub(crate) fn does(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Where the daemons run.
#[derive(Clone, Debug)]
pub enum Daemons {
    /// In their clusters, as Deployments of this image.
    Inside {
        /// Which holds both daemons; none: the one the Deployment has, or that of this version.
        image: Option<String>,
    },
    /// Elsewhere, with kubeconfigs written into this folder.
    Outside(PathBuf),
}

/// A part of what a command installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// CustomResourceDefinitions, which have to be there before objects of their kinds.
    Crds,
    /// What belongs into the leader's cluster for leading, and for letting a member in.
    Leader,
    /// What belongs into the member's cluster.
    Member,
}
