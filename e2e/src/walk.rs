//! The writes that daemons may send, and those that tests refuse one after the other.
//!
//! | module | holds |
//! |---|---|
//! | [`services`], [`offloading`], [`binding`], [`membership`] | the writes that the tests of a feature refuse |
//! | [`exempt`] | writes that no test refuses, and why |
//! | [`reported`] | waits for what daemons report about refused writes |
//!
//! The roles of `manifests/` name every write that a daemon may send. A write that is in none of these tables fails the test below.

pub mod binding;
pub mod exempt;
pub mod membership;
pub mod offloading;
pub mod reported;
pub mod services;

/// A write that a policy refuses in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Daemon that sends it.
    pub by: &'static str,
    /// Cluster whose API server refuses it.
    pub at: &'static str,
    /// Kind of the object, as `freeport_writes_refused` names it.
    pub kind: &'static str,
    /// Resource of the object, followed by the subresource: `services`, `serviceimportsstatus`.
    pub resource: &'static str,
    /// `create`, `update` or `delete`.
    pub operation: &'static str,
    /// Verb of the request, as `freeport_writes_refused` names it.
    pub verb: &'static str,
}

impl Refused {
    const fn new(
        (by, at): (&'static str, &'static str),
        kind: &'static str,
        (resource, operation): (&'static str, &'static str),
        verb: &'static str,
    ) -> Self {
        Self { by, at, kind, resource, operation, verb }
    }

    /// Kind and verb, as [`Metrics::by_all`](crate::metrics::Metrics::by_all) joins them.
    pub fn counted_as(&self) -> String {
        format!("{} {}", self.kind, self.verb)
    }
}

/// Daemons, each at an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sender {
    /// A leader, in its own cluster.
    Leader,
    /// A member, in its own cluster.
    Member,
    /// A member, in the cluster of its leader or of a provider.
    MemberAway,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cli::objects::{Object, access, area, bind, leader, member, offload};
    use serde_json::Value;

    use super::*;

    type Write = (Sender, String, String);

    fn texts(list: &Value) -> impl Iterator<Item = &str> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// Roles of users, which no daemon has.
    fn is_of_users(role: &Object) -> bool {
        ["edit", "view", "admin"].iter().any(|end| role.name.ends_with(&format!("-{end}")))
    }

    /// Every write that the roles grant, and the role.
    fn granted() -> BTreeMap<Write, String> {
        let of_binding = [bind::provider(), bind::consumer()].concat().into_iter();
        let (binder, of_daemons): (Vec<_>, Vec<_>) = of_binding.partition(|role| role.name == "kube-binder");
        let (provider, consumer): (Vec<_>, Vec<_>) =
            of_daemons.into_iter().partition(|role| role.name.ends_with("-provider"));
        let all = [
            (Sender::Leader, [leader::objects(), area::objects("demo", "leader"), provider].concat()),
            (
                Sender::Member,
                [member::objects(), member::credential("demo"), offload::all("image"), consumer].concat(),
            ),
            (Sender::MemberAway, [access::objects("demo", "east", None), binder].concat()),
        ];
        let mut granted = BTreeMap::new();
        for (sender, objects) in all {
            let roles = objects.iter().filter(|object| object.resource.kind.ends_with("Role"));
            for role in roles.filter(|role| !is_of_users(role)) {
                for rule in role.body["rules"].as_array().into_iter().flatten() {
                    for resource in texts(&rule["resources"]) {
                        for verb in texts(&rule["verbs"]) {
                            let operation = match verb {
                                "create" | "delete" => verb,
                                "update" | "patch" => "update",
                                _ => continue,
                            };
                            let write = (sender, resource.replace('/', ""), operation.to_owned());
                            granted.insert(write, role.name.clone());
                        }
                    }
                }
            }
        }
        granted
    }

    fn sender(refused: &Refused) -> Sender {
        let is_own = refused.by.ends_with(&format!("-{}", refused.at));
        match refused.by.starts_with("freeport-leader") {
            true => Sender::Leader,
            false if is_own => Sender::Member,
            false => Sender::MemberAway,
        }
    }

    #[test]
    fn every_write_that_a_role_grants_is_refused_in_a_test_or_has_a_reason() {
        let granted = granted();
        let refused = [
            services::REFUSED,
            offloading::ALL.concat().as_slice(),
            binding::REFUSED,
            binding::CONTRACTS,
            binding::OF_CONSUMERS,
            membership::WHILE_MEMBER,
            membership::LEAVING,
        ]
        .concat();
        let write = |(sender, resource, operation): (Sender, &str, &str)| {
            (sender, resource.to_owned(), operation.to_owned())
        };
        let mut walked = BTreeMap::new();
        for refused in
            refused.iter().filter(|refused| refused.resource.trim_end_matches("status") != binding::BOUND)
        {
            walked.insert(write((sender(refused), refused.resource, refused.operation)), refused);
        }
        let mut exempt = BTreeMap::new();
        for (sender, resource, operations, why) in exempt::EXEMPT {
            for operation in *operations {
                exempt.insert(write((*sender, resource, operation)), *why);
            }
        }
        let not_walked: Vec<_> = granted
            .iter()
            .filter(|(write, _)| !walked.contains_key(*write) && !exempt.contains_key(*write))
            .collect();
        assert!(
            not_walked.is_empty(),
            "refuse these in a test of e2e::walk, or say why not: {not_walked:#?}"
        );
        let both: Vec<_> = exempt.keys().filter(|write| walked.contains_key(*write)).collect();
        assert!(both.is_empty(), "these are refused in a test, and have no reason to be exempt: {both:?}");
        let not_granted: Vec<_> =
            walked.keys().chain(exempt.keys()).filter(|write| !granted.contains_key(*write)).collect();
        assert!(not_granted.is_empty(), "no role grants these: {not_granted:?}");
    }
}
