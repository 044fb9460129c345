//! Kubeconfigs, as YAML and as JSON.

/// Fields of every kubeconfig.
const PARTS: [&str; 3] = ["clusters", "contexts", "users"];

/// Fields with credentials of a user of a kubeconfig.
const PROOFS: [&str; 6] = ["token", "password", "client-key", "client-certificate", "exec", "auth-provider"];

/// Longest text that is taken for one.
const MAX: usize = 1 << 20;

/// Reports whether a value is a kubeconfig with a credential.
pub(super) fn is_one(text: &str) -> bool {
    text.len() <= MAX
        && PARTS.iter().all(|part| text.contains(part))
        && PROOFS.iter().any(|proof| text.contains(proof))
}
