//! Whether offloading works: its policy, the webhook, consents and Namespaces.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    cluster_set::WRITES_ACCEPTED,
    offload::{
        namespace::{PLACEMENT_ENFORCED, PODS_ACCEPTED},
        peer::READY,
    },
};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};

use super::{
    Verdict,
    objects::{named, tally, unless_true},
};
use crate::{
    objects::{
        Object, SYSTEM,
        offload::{self, webhook::NAME},
    },
    status::{
        found::{Entry, Gap, OFFLOADED, Offloading, Part, Why},
        report::Tally,
    },
};

/// What sets it up again.
const COMMAND: &str = "join --offload";

impl Verdict<'_> {
    /// OffloadPeers and NamespaceOffloadings, counted.
    pub(super) fn offloading(&mut self, found: &Offloading) -> (Option<Tally>, Option<Tally>) {
        let means =
            "what runs as freeport-member can delete every Namespace and change every Node of this cluster";
        self.policy(Some(&found.policy), &offload::policy(), means, COMMAND);
        for (check, wanted) in found.checks.iter().zip(offload::checks()) {
            self.check(check.as_ref(), &wanted, COMMAND);
        }
        self.webhook(&found.webhook);
        self.rollout(found.server.as_ref());
        let peers = self.entries("OffloadPeer", &found.peers, &[READY]);
        let namespaces =
            self.entries("NamespaceOffloading", &found.namespaces, &[OFFLOADED, PLACEMENT_ENFORCED]);
        self.lost(found);
        for unmapped in &found.unmapped {
            let (what, next) = unmapped.trouble();
            self.problem(format!("Namespace {}", unmapped.twin), what, next);
        }
        self.unknown_peers(found);
        (peers, namespaces)
    }

    /// Whether a leader has the kinds by which clusters offload to each other.
    pub(super) fn records(&mut self, lost: &Part<Vec<String>>) {
        const INIT: &str = "init --offload";
        match lost {
            Err(Gap { part, why: Why::Forbidden(message) }) => {
                self.notes.push(format!("{part} was not checked: {message}"));
            }
            lost => {
                for crd in self.part(lost, INIT).into_iter().flatten() {
                    self.problem(
                        format!("CustomResourceDefinition {crd}"),
                        "does not exist: nothing new is offloaded over this leader",
                        format!("run `freeport {INIT}` again, which installs it"),
                    );
                }
            }
        }
    }

    fn entries(&mut self, kind: &str, part: &Part<Vec<Entry>>, wanted: &[&str]) -> Option<Tally> {
        let entries = self.part(part, COMMAND)?;
        let is_false = |conditions: &[_], type_| named(conditions, type_).filter(|it| it.status == "False");
        // What is refused is why other conditions are not True.
        let tally = tally(entries, |conditions| {
            is_false(conditions, WRITES_ACCEPTED)
                .or_else(|| unless_true(conditions, wanted, &[]))
                .or_else(|| is_false(conditions, PODS_ACCEPTED))
        });
        self.troubles(kind, &tally);
        Some(tally)
    }

    /// Whether there are Namespaces in which no Pod is made, or which have twins, and what says so has vanished. Without its kind that is said
    /// already.
    fn lost(&mut self, found: &Offloading) {
        let Ok(offloadings) = &found.namespaces else { return };
        let Some(placed) = self.part(&found.placed, COMMAND) else { return };
        let is_told = |name: &str| offloadings.iter().any(|it| it.namespace == name);
        let names = placed.iter().map(String::as_str).chain(found.vanished.namespaces());
        for name in names.filter(|name| !is_told(name)).collect::<BTreeSet<_>>() {
            let is_placed = placed.iter().any(|placed| placed == name);
            let (what, next) = found.vanished.trouble(name, is_placed);
            self.problem(format!("Namespace {name}"), what, next);
        }
    }

    /// Whether Namespaces are offloaded from or to a cluster of which no OffloadPeer says anything: it went with its kind, or somebody deleted it.
    fn unknown_peers(&mut self, found: &Offloading) {
        let (Ok(peers), Some(twins_here)) = (&found.peers, self.part(&found.twins_here, COMMAND)) else {
            return;
        };
        let unknown = |all: &[(String, String)]| {
            let mut by_cluster = BTreeMap::<String, BTreeSet<String>>::new();
            for (cluster, namespace) in all.iter().filter(|(id, _)| peers.iter().all(|peer| peer.name != *id))
            {
                by_cluster.entry(cluster.clone()).or_default().insert(namespace.clone());
            }
            by_cluster.into_iter().map(|(id, names)| (id, names.into_iter().collect::<Vec<_>>().join(", ")))
        };
        for (home, names) in unknown(twins_here) {
            self.problem(
                format!("OffloadPeer {home}"),
                format!("does not exist, and Namespaces of {home} are here ({names}): their Pods run on, and no new one comes"),
                format!(
                    "freeport offload accept {home}, with the --label and --namespace that it had, and --yes; to have these Namespaces gone, \
                     freeport unoffload namespace in {home}"
                ),
            );
        }
        for (host, names) in unknown(&found.twins_elsewhere) {
            self.problem(
                format!("OffloadPeer {host}"),
                format!("does not exist, and Namespaces have twins in {host} ({names}): their Pods there run on, and no new one goes there"),
                format!("freeport offload use {host}; to have the twins gone, freeport unoffload namespace after that"),
            );
        }
    }

    /// Whether the webhook's Pods are of the newest template: old ones answer on while new ones do not start.
    fn rollout(&mut self, part: Option<&Part<Option<Deployment>>>) {
        let deployment = self.seen(part).flatten();
        let conditions = deployment.and_then(|deployment| deployment.status.as_ref()?.conditions.as_ref());
        let hangs = |condition: &&DeploymentCondition| {
            let is_of = |type_: &&str| condition.type_.as_deref() == Some(*type_);
            condition.status.as_deref() == Some("False") && ["Available", "Progressing"].iter().any(is_of)
        };
        if let Some(condition) = conditions.into_iter().flatten().find(hangs) {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            self.problem(
                format!("Deployment {SYSTEM}/{NAME}"),
                format!("{} is False: {}", text(&condition.type_), text(&condition.message)),
                format!("kubectl -n {SYSTEM} describe pods -l app.kubernetes.io/name={NAME}; `freeport {COMMAND}` again names the image of this release"),
            );
        }
    }

    /// Whether its absence stops Pods is up to the administrator; that it does not is worth knowing.
    fn webhook(&mut self, part: &Part<Option<Object>>) {
        match part {
            Err(Gap { part, why: Why::Forbidden(message) }) => {
                self.notes.push(format!("{part} was not checked: {message}"));
            }
            part => {
                let there = self.part(part, COMMAND).and_then(Option::as_ref);
                let policy = there.and_then(|there| there.body.pointer("/webhooks/0/failurePolicy"));
                if policy.is_some_and(|policy| policy == "Ignore") {
                    self.notes.push(
                        "MutatingWebhookConfiguration freeport-webhook has failurePolicy Ignore: Pods that are created while \
                         freeport-webhook does not answer are not placed, and stay where they are"
                            .into(),
                    );
                }
            }
        }
    }
}
