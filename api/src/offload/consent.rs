//! Whether the administrator of a host allows a twin, or a Pod: what its OffloadPeer says.

use super::{
    peer::Incoming,
    quantity::{in_words, nanos},
    requests::Requests,
    twin::default_name,
};

/// Why a host makes no twin, or no Pod. The home can do nothing about it; the host's administrator can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The home has to be accepted.
    #[error(
        "this cluster does not accept {home}; its administrator does so with: freeport offload accept {home}"
    )]
    NotAccepted {
        /// ID of the home.
        home: String,
    },
    /// Nobody can say whether the home is accepted.
    #[error(
        "cannot tell whether this cluster accepts {home}: its OffloadPeers cannot be read, or OffloadPeer {home} does not decode or vanished"
    )]
    ConsentUnknown {
        /// ID of the home.
        home: String,
    },
    /// The name has to be allowed.
    #[error(
        "OffloadPeer {home} allows no twin called {twin}; spec.incoming.namespaces may name it, and with strategy DefaultName a twin \
         needs no permission"
    )]
    NameNotAllowed {
        /// ID of the home.
        home: String,
        /// Name of the twin.
        twin: String,
    },
    /// Others have to go first, or more have to be allowed.
    #[error(
        "OffloadPeer {home} allows {most} Namespaces, and as many are here; spec.incoming.maxNamespaces may allow more"
    )]
    TooMany {
        /// ID of the home.
        home: String,
        /// How many are allowed.
        most: i32,
    },
    /// Other Pods have to go first, or more has to be allowed.
    #[error(
        "OffloadPeer {home} allows {most} of {resource}, of which its Pods take {taken}, and this one would take {wanted}; \
         spec.incoming.resources may allow more"
    )]
    ResourcesExceeded {
        /// ID of the home.
        home: String,
        /// Name of the resource.
        resource: String,
        /// How much is allowed.
        most: String,
        /// How much Pods take that are there.
        taken: String,
        /// How much the Pod asks for.
        wanted: String,
    },
}

impl Refusal {
    /// One CamelCase word for machines.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotAccepted { .. } => "NotAccepted",
            Self::ConsentUnknown { .. } => "ConsentUnknown",
            Self::NameNotAllowed { .. } => "NameNotAllowed",
            Self::TooMany { .. } => "TooManyNamespaces",
            Self::ResourcesExceeded { .. } => "ResourcesExceeded",
        }
    }
}

/// Whether Namespace `namespace` of cluster `home` may have a twin of this name here.
///
/// `incoming` is the consent to that home. Names that no consent can allow are not its matter
/// ([`check_twin`](super::twin::check_twin)), nor is what exists.
pub fn allows_name(incoming: &Incoming, home: &str, namespace: &str, twin: &str) -> Result<(), Refusal> {
    let is_default = default_name(namespace, home).is_ok_and(|name| name == twin);
    match is_default || incoming.namespaces.iter().any(|pattern| matches(pattern, twin)) {
        true => Ok(()),
        false => Err(Refusal::NameNotAllowed { home: home.to_owned(), twin: twin.to_owned() }),
    }
}

/// Whether cluster `home` may have another twin here, where it has `count` already.
pub fn has_place(incoming: &Incoming, home: &str, count: usize) -> Result<(), Refusal> {
    let most = incoming.max_namespaces;
    match usize::try_from(most).is_ok_and(|most| count < most) {
        true => Ok(()),
        false => Err(Refusal::TooMany { home: home.to_owned(), most }),
    }
}

/// Whether a Pod may come that requests `wanted`, where the Pods of cluster `home` that are here request `taken`. Of what the consent does
/// not name there is nothing.
pub fn has_room(incoming: &Incoming, home: &str, taken: &Requests, wanted: &Requests) -> Result<(), Refusal> {
    let capacity = incoming.capacity();
    for (resource, amount) in wanted.iter().filter(|(_, amount)| *amount > 0) {
        let most = capacity.get(resource).and_then(|most| nanos(&most.0)).unwrap_or(0);
        let taken = taken.of_resource(resource);
        if taken.saturating_add(amount) > most {
            return Err(Refusal::ResourcesExceeded {
                home: home.to_owned(),
                resource: resource.to_owned(),
                most: in_words(most),
                taken: in_words(taken),
                wanted: in_words(amount),
            });
        }
    }
    Ok(())
}

/// Whether `pattern`, in which `*` stands for any text, is `name`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(beginning) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    // Taking each part where it first occurs leaves the most for those after it.
    for part in middle.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn incoming(patterns: &[&str], most: i32) -> Incoming {
        let namespaces = patterns.iter().map(|&pattern| pattern.into()).collect();
        Incoming { namespaces, max_namespaces: most, ..Incoming::default() }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in [
            ("shop", "shop"),
            ("*", "anything"),
            ("team-*", "team-"),
            ("team-*", "team-a"),
            ("*-dev", "shop-dev"),
            ("a*b*c", "abc"),
            ("a*b*c", "axxbxbxc"),
            ("**", ""),
            ("a*a", "aa"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("shop", "shop2"), ("team-*", "team"), ("a*b*c", "acb"), ("a*a", "a"), ("*x*", "a")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn the_default_name_always_may() {
        let none = incoming(&[], 0);
        assert_eq!(allows_name(&none, "west", "shop", "shop-west"), Ok(()));
        assert_eq!(allows_name(&none, "eu.west", "shop", "shop-eu-west"), Ok(()));
        for other in ["shop", "shop-east", "web-west"] {
            let refused = allows_name(&none, "west", "shop", other).unwrap_err();
            assert_eq!(refused.reason(), "NameNotAllowed", "{other}");
        }
        assert_eq!(allows_name(&incoming(&["sh*"], 2), "west", "shop", "shop"), Ok(()));
    }

    #[test]
    fn as_many_twins_have_a_place_as_the_consent_says() {
        let of = |most: i32, count: usize| has_place(&incoming(&["*"], most), "west", count);
        assert_eq!(of(2, 1), Ok(()));
        assert_eq!(of(2, 2).unwrap_err().reason(), "TooManyNamespaces");
        assert!(of(0, 0).is_err() && of(-1, 0).is_err());
    }

    #[test]
    fn pods_take_no_more_than_is_allowed() {
        let resources = json!({"cpu": "1", "memory": "1Gi", "pods": "2", "ephemeral-storage": "1Gi"});
        let incoming: Incoming = serde_json::from_value(json!({"resources": resources})).unwrap();
        let pod = |requests: Value| {
            Requests::of_pod(&json!({"containers": [{"resources": {"requests": requests}}]}))
        };
        let room = |taken: &[&Requests], wanted: &Requests| {
            let mut sum = Requests::default();
            taken.iter().for_each(|requests| sum.add(requests));
            has_room(&incoming, "west", &sum, wanted).map_err(|refused| refused.to_string())
        };
        let tenth = pod(json!({"cpu": "100m"}));
        let rest = pod(json!({"cpu": "0.9", "memory": "1024Mi", "ephemeral-storage": "1Gi"}));
        assert_eq!(room(&[&tenth], &rest), Ok(()), "to the last bit");
        for (resource, amount) in [("cpu", "1m"), ("memory", "1"), ("ephemeral-storage", "1Ki")] {
            let refused = room(&[&rest, &tenth], &pod(json!({resource: amount}))).unwrap_err();
            assert!(refused.contains(&format!(" of {resource},")), "{refused}");
        }
        let third = room(&[&tenth, &tenth], &pod(json!({}))).unwrap_err();
        assert!(
            third.contains("allows 2 of pods, of which its Pods take 2, and this one would take 1"),
            "{third}"
        );
        assert!(room(&[], &pod(json!({"nvidia.com/gpu": "1"}))).is_err(), "what is not named");
        assert_eq!(room(&[], &pod(json!({"nvidia.com/gpu": "0"}))), Ok(()));
    }
}
