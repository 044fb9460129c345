//! Names that a provider gives what is a consumer's. They follow from who the consumer is, so that whoever asks twice gets the same.

use sha2::{Digest, Sha224};

use crate::name;

/// Most characters of the name of a Namespace.
const NAMESPACE_MAX: usize = 63;

/// Most characters that follow the prefix in the name of a cluster namespace.
const HASH_MAX: usize = 13;

/// Whether names of cluster namespaces can begin with it: they are Namespaces, and the name of each for a consumer's Namespace begins with
/// the whole of theirs. Without a prefix all names would be kept for them.
///
/// # Errors
/// A sentence.
pub fn is_prefix(text: &str) -> Result<(), String> {
    let longest = format!("{text}{}", "0".repeat(HASH_MAX));
    let is_whole =
        prefixed_namespace(&longest, &"n".repeat(NAMESPACE_MAX)).starts_with(&format!("{longest}-"));
    if !text.is_empty() && name::is_dns_label(&longest) && is_whole {
        return Ok(());
    }
    Err("must be a prefix for names of Namespaces: 1 to 33 characters of a-z, 0-9 and -, and not begin with -".to_owned())
}

/// Whether it is a Namespace of the system, which no provider has made here; `own` is that of our daemons.
pub fn is_of_system(namespace: &str, own: &str) -> bool {
    namespace == "default" || namespace == own || namespace.starts_with("kube-")
}

/// Name of the cluster namespace of a consumer.
pub fn cluster_namespace(prefix: &str, identity: &str) -> String {
    format!("{prefix}{}", hash(identity))
}

/// The uid of the cluster that a contract with this `identity` is of, if that is another one than `us`. Providers may know consumers by
/// other words than uids, and then it is not known.
pub fn of_another<'a>(identity: Option<&'a str>, us: &str) -> Option<&'a str> {
    identity.filter(|identity| is_uid(identity) && *identity != us)
}

fn is_uid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(is_hex)
}

/// The first eight bytes of SHA-224 as a number with 36 digits, as kube-bind writes it: one `0` for each leading byte that is zero.
fn hash(identity: &str) -> String {
    let digest = Sha224::digest(identity.as_bytes());
    let bytes: [u8; 8] = std::array::from_fn(|index| digest[index]);
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut number = u64::from_be_bytes(bytes);
    let mut digits = Vec::new();
    while number > 0 {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize]);
        number /= 36;
    }
    digits.extend(std::iter::repeat_n(b'0', zeros));
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

/// Name of the provider's Namespace for a Namespace of the consumer, where its name says whose it is: with a hash in place of the end
/// where it would be too long.
pub fn prefixed_namespace(cluster_namespace: &str, namespace: &str) -> String {
    let whole = format!("{cluster_namespace}-{namespace}");
    if whole.len() <= NAMESPACE_MAX {
        return whole;
    }
    let hash = name::hash(namespace);
    let begin = &whole[..whole.floor_char_boundary(NAMESPACE_MAX - hash.len() - 1)];
    format!("{}-{hash}", begin.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_contract_is_of_another_cluster_if_its_identity_is_the_uid_of_one() {
        let (us, other) = ("0f9d8a2e-1111-4222-8333-0123456789ab", "0f9d8a2e-1111-4222-8333-0123456789ac");
        assert_eq!(of_another(Some(other), us), Some(other));
        for ours in [None, Some(us), Some("somebody"), Some("")] {
            assert_eq!(of_another(ours, us), None, "{ours:?}");
        }
    }

    #[test]
    fn a_cluster_namespace_is_named_as_kube_bind_names_it() {
        assert_eq!(cluster_namespace("kube-bind-", "test-id-123"), "kube-bind-37p3oxx6sh4fd");
        let lengths: std::collections::BTreeSet<_> = (0..2000).map(|n| hash(&n.to_string()).len()).collect();
        assert!(lengths.iter().all(|length| (11..=HASH_MAX).contains(length)), "{lengths:?}");
    }

    #[test]
    fn cluster_namespaces_have_names_that_namespaces_can_have() {
        let longest = "n".repeat(33);
        for right in ["kube-bind-", "c", &longest] {
            assert_eq!(is_prefix(right), Ok(()), "{right}");
        }
        for wrong in ["", "Kube_", "-x", "a.b", &"n".repeat(34)] {
            assert!(is_prefix(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_namespace_that_would_be_too_long_ends_in_a_hash() {
        let cns = "kube-bind-37p3oxx6sh4fd";
        assert_eq!(prefixed_namespace(cns, "team1"), "kube-bind-37p3oxx6sh4fd-team1");
        let just = "n".repeat(63 - cns.len() - 1);
        assert_eq!(prefixed_namespace(cns, &just), format!("{cns}-{just}"));
        let [one, two] = ["a", "b"].map(|end| prefixed_namespace(cns, &format!("{just}{end}")));
        assert!(one != two && one.len() <= 63 && one.starts_with(cns), "{one} {two}");
    }

    proptest! {
        #[test]
        fn it_can_always_be_the_name_of_a_namespace(namespace in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?") {
            prop_assert!(name::is_dns_label(&prefixed_namespace("kube-bind-37p3oxx6sh4fd", &namespace)));
        }
    }
}
