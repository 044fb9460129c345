//! What daemons wrote in a run, and must not: foreign objects, and anything by a replica whose place another one has taken. Pure.

use std::collections::BTreeMap;

use api::label;

use super::places::FOREIGN;
use crate::{audit::Written, fixture::AREA};

/// A request that was carried out.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Sorts as the times do.
    pub at: String,
    pub user: String,
    pub agent: String,
    /// Verb and kind.
    pub what: String,
    pub namespace: String,
    pub name: String,
}

impl From<&Written> for Trace {
    fn from(written: &Written) -> Self {
        Self {
            at: written.at().to_owned(),
            user: written.user().to_owned(),
            agent: written.agent().to_owned(),
            what: written.what(),
            namespace: written.namespace().to_owned(),
            name: written.name().to_owned(),
        }
    }
}

impl Trace {
    /// Which of several replicas wrote it.
    fn replica(&self) -> Option<&str> {
        self.agent.rsplit_once('(')?.1.strip_suffix(')')
    }

    /// Whether it is about the Lease that says which replica is active.
    fn is_of_election(&self) -> bool {
        self.what.ends_with(" leases") && self.name.ends_with("-active")
    }

    fn kind(&self) -> &str {
        self.what.split_once(' ').map_or("", |(_, kind)| kind)
    }

    fn said(&self) -> String {
        let Self { at, user, agent, what, namespace, name } = self;
        format!("{at} {what} {namespace}/{name} by {user} ({agent})")
    }
}

/// What of the requests of all daemons is about objects that are not theirs, in Namespaces that begin so and in the Common Area.
pub fn foreign(traces: &[Trace], prefix: &str) -> Vec<String> {
    let is_theirs = |trace: &&Trace| match trace.namespace.as_str() {
        AREA => may_be_in_the_area(trace),
        namespace if namespace.starts_with(prefix) => may_be_in_a_users_namespace(trace),
        _ => true,
    };
    traces.iter().filter(|trace| !is_theirs(trace)).map(Trace::said).collect()
}

fn may_be_in_a_users_namespace(trace: &Trace) -> bool {
    let is_named_so = trace.name.starts_with(label::IMPORTED_PREFIX) && !trace.name.contains(FOREIGN);
    match trace.kind() {
        "services" | "endpointslices" => is_named_so,
        "serviceimports" | "serviceimports/status" => trace.name != FOREIGN,
        "serviceexports/status" | "events" => true,
        _ => false,
    }
}

/// Each member writes its own records, and the leader the imports.
fn may_be_in_the_area(trace: &Trace) -> bool {
    let member = trace.user.strip_prefix(&format!("system:serviceaccount:{AREA}:{}-", label::MEMBER));
    let is_of = |cluster: &str| {
        trace.name.strip_prefix(cluster).is_some_and(|rest| rest.starts_with('-') || rest.starts_with('.'))
    };
    match (trace.kind(), member) {
        ("resourceexports", Some(cluster)) => is_of(cluster),
        // The leader deletes what is withdrawn, and never makes any.
        ("resourceexports", None) => trace.what.starts_with("delete ") || trace.what.starts_with("patch "),
        ("resourceimports", member) => member.is_none(),
        _ => true,
    }
}

/// What was written by a replica while another one held the Lease of the active one: both before and after it that one renewed it.
/// Events are left out: a replica that ends gives up the Lease at once, and then sends what it still has to tell of its time.
pub fn by_deposed(traces: &[Trace]) -> Vec<String> {
    let mut holders = BTreeMap::<&str, Vec<(&str, &str)>>::new();
    for trace in traces.iter().filter(|trace| trace.is_of_election()) {
        if let Some(replica) = trace.replica() {
            holders.entry(daemon(replica)).or_default().push((&trace.at, replica));
        }
    }
    holders.values_mut().for_each(|of| of.sort_unstable());
    let is_deposed = |trace: &&Trace| {
        let is_other = !trace.is_of_election() && !trace.what.ends_with(" events");
        let Some(replica) = trace.replica().filter(|_| is_other) else { return false };
        let held = holders.get(daemon(replica)).map(Vec::as_slice).unwrap_or_default();
        let next = held.partition_point(|(at, _)| *at <= trace.at.as_str());
        let before = next.checked_sub(1).and_then(|at| held.get(at));
        [before, held.get(next)].iter().all(|held| held.is_none_or(|(_, holder)| *holder != replica))
    };
    traces.iter().filter(is_deposed).map(Trace::said).collect()
}

/// Of which daemon it is one: `east-1` is of `east`.
fn daemon(replica: &str) -> &str {
    replica.rsplit_once('-').map_or(replica, |(daemon, _)| daemon)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(at: &str, replica: &str, what: &str, name: &str) -> Trace {
        let agent = format!("freeport-member/0.1.0 ({replica})");
        Trace { at: at.into(), agent, what: what.into(), name: name.into(), ..Trace::default() }
    }

    #[test]
    fn who_writes_while_another_replica_holds_the_lease_is_told() {
        let lease = "freeport-member-active";
        let traces = [
            by("01", "east-0", "patch leases", lease),
            by("02", "east-0", "patch services", "a"),
            by("03", "east-1", "patch leases", lease),
            by("04", "east-1", "patch services", "b"),
            by("05", "east-0", "create events", "told"),
            by("05", "east-0", "patch services", "c"),
            by("06", "east-1", "patch leases", lease),
            by("07", "leader-0", "patch leases", "freeport-leader-active"),
            // Whose Lease was written while nobody kept the log.
            by("08", "east-0", "patch services", "d"),
            by("09", "east-0", "patch leases", lease),
        ];
        let deposed = by_deposed(&traces);
        assert!(deposed.len() == 1 && deposed[0].starts_with("05"), "{deposed:?}");
        let sole = Trace { agent: "freeport-member/0.1.0".into(), ..traces[5].clone() };
        assert_eq!(by_deposed(&[sole]), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_of_the_daemons_is_told_by_kind_and_name() {
        let member = &*format!("system:serviceaccount:{AREA}:freeport-member-east");
        let leader = "system:serviceaccount:freeport-system:freeport-leader";
        let (ns, area) = ("chaos-0", AREA);
        for (is_theirs, user, what, namespace, name) in [
            (true, leader, "create services", ns, "antrea-mc-s1"),
            (false, leader, "patch services", ns, "s1"),
            (false, leader, "delete services", ns, "antrea-mc-foreign"),
            (false, leader, "delete endpointslices", ns, "s1-one"),
            (true, leader, "patch serviceexports/status", ns, "s1"),
            (false, leader, "delete serviceexports", ns, "s1"),
            (false, leader, "patch serviceimports", ns, "foreign"),
            (false, leader, "deletecollection services", ns, ""),
            (true, leader, "patch configmaps", "elsewhere", "x"),
            (true, member, "create resourceexports", area, "east-chaos-0-s1-service"),
            (false, member, "delete resourceexports", area, "west.chaos-0.s1.service"),
            (false, member, "delete resourceimports", area, "chaos-0.s1.service"),
            (true, leader, "delete resourceexports", area, "west.chaos-0.s1.service"),
            (false, leader, "create resourceexports", area, "west.chaos-0.s1.service"),
            (true, leader, "create resourceimports", area, "chaos-0.s1.service"),
        ] {
            let [user, what, namespace, name] = [user, what, namespace, name].map(str::to_owned);
            let trace = Trace { user, what, namespace, name, ..Trace::default() };
            assert_eq!(foreign(std::slice::from_ref(&trace), "chaos-").is_empty(), is_theirs, "{trace:?}");
        }
    }
}
