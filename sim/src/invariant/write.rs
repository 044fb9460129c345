//! A write of an API server.

use std::{fmt, time::Duration};

use api::label;
use serde_json::Value;

/// Who writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Author {
    /// A daemon of Freeport.
    Daemon(Process),
    /// An API server becomes what a backup holds.
    Restore,
    /// A user, or a controller of Kubernetes.
    #[default]
    Other,
}

/// A process of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its program.
    pub program: &'static str,
    /// The cluster in which it runs.
    pub cluster: String,
    /// Which of several replicas it is.
    pub replica: Option<String>,
}

/// What an API server stored, or deleted.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Virtual time since the start.
    pub at: Duration,
    pub cluster: &'a str,
    /// Plural of the kind.
    pub kind: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// None: it is created.
    pub before: Option<&'a Value>,
    /// None: it is deleted.
    pub after: Option<&'a Value>,
    pub author: &'a Author,
}

impl<'a> Write<'a> {
    /// The daemon that writes.
    pub(super) fn daemon(&self) -> Option<&'a Process> {
        match self.author {
            Author::Daemon(process) => Some(process),
            _ => None,
        }
    }

    /// Whether a leader, or a member of `cluster`, writes.
    pub(super) fn is_by(&self, program: &str, cluster: &str) -> bool {
        self.daemon().is_some_and(|by| by.program == program && by.cluster == cluster)
    }

    /// The object: after the write, or as it was last.
    pub(super) fn object(&self) -> &'a Value {
        static NOTHING: Value = Value::Null;
        self.after.or(self.before).unwrap_or(&NOTHING)
    }

    /// A label of the object.
    pub(super) fn label(&self, key: &str) -> Option<&'a str> {
        self.object()["metadata"]["labels"][key].as_str()
    }

    /// `namespace/name` of the Service that an imported slice is of, and the cluster that its endpoints are from.
    pub(super) fn imported(&self) -> Option<(String, &'a str)> {
        let is_slice = self.kind == "endpointslices";
        let of = self.label(label::MCS_SERVICE_NAME).filter(|_| is_slice)?;
        Some((format!("{}/{of}", self.namespace), self.label(label::MCS_SOURCE_CLUSTER)?))
    }

    /// Whether the object ends: it is deleted, or begins to terminate.
    pub(super) fn ends(&self) -> bool {
        let before = self.before.is_some_and(|before| !is_terminating(before));
        before && self.after.is_none_or(is_terminating)
    }
}

/// Reports whether the object's deletion was requested.
pub(super) fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, cluster, replica } = self;
        write!(
            f,
            "{program} of {cluster}{}",
            replica.as_ref().map(|replica| format!(" ({replica})")).unwrap_or_default()
        )
    }
}

impl fmt::Display for Write<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match (self.before, self.after) {
            (None, _) => "creates",
            (_, None) => "deletes",
            _ => "changes",
        };
        match self.author {
            Author::Daemon(process) => write!(f, "{process}")?,
            Author::Restore => write!(f, "a restore")?,
            Author::Other => write!(f, "somebody")?,
        }
        let Self { cluster, kind, namespace, name, .. } = self;
        write!(f, " {verb} {kind} {namespace}/{name} in {cluster}")
    }
}
