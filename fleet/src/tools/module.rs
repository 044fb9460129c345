//! The Go modules that pin the programs, and what their content says.

use sha2::{Digest, Sha256};

pub(super) const KUBERNETES: Module = Module {
    name: "kubernetes",
    main: "k8s.io/kubernetes",
    version_variable: Some("k8s.io/component-base/version.gitVersion"),
    go_mod: include_str!("../../tools/kubernetes/go.mod"),
    go_sum: include_str!("../../tools/kubernetes/go.sum"),
};
pub(super) const ETCD: Module = Module {
    name: "etcd",
    main: "go.etcd.io/etcd/server/v3",
    version_variable: None,
    go_mod: include_str!("../../tools/etcd/go.mod"),
    go_sum: include_str!("../../tools/etcd/go.sum"),
};
pub(super) const COREDNS: Module = Module {
    name: "coredns",
    main: "github.com/coredns/coredns",
    version_variable: None,
    go_mod: include_str!("../../tools/coredns/go.mod"),
    go_sum: include_str!("../../tools/coredns/go.sum"),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// Of the directory in the cache.
    pub(super) name: &'static str,
    /// The required module whose programs are built.
    pub(super) main: &'static str,
    /// The Go variable that holds the version; without it the API server calls itself v0.0.0.
    pub(super) version_variable: Option<&'static str>,
    pub(super) go_mod: &'static str,
    pub(super) go_sum: &'static str,
}

impl Module {
    /// The version of the main module.
    pub(super) fn version(&self) -> &'static str {
        self.words().find(|words| words.0 == self.main).map_or("unknown", |words| words.1)
    }

    /// The lowest Go that can build it.
    pub(super) fn go(&self) -> &'static str {
        self.words().find(|words| words.0 == "go").map_or("1", |words| words.1)
    }

    /// The linker flags, with which alone the built program changes besides the module's files.
    pub(super) fn linker_flags(&self) -> String {
        let version = self.version_variable.map(|variable| format!(" -X {variable}={}", self.version()));
        format!("-s -w{}", version.unwrap_or_default())
    }

    /// The directory in the cache: another one whenever anything changes that the programs are made from.
    pub(super) fn directory(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.go_mod, self.go_sum, &self.linker_flags(), std::env::consts::ARCH] {
            hash.update(part);
            hash.update([0]);
        }
        let hex: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{hex}", self.name, self.version())
    }

    fn words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.go_mod.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_module_file() {
        for module in [KUBERNETES, ETCD, COREDNS] {
            assert!(module.version().starts_with('v'), "{}", module.version());
            assert!(module.go().starts_with("1."), "{}", module.go());
        }
        assert!(KUBERNETES.linker_flags().ends_with(&format!("gitVersion={}", KUBERNETES.version())));
    }

    #[test]
    fn any_change_is_another_directory() {
        let changed = Module { go_sum: "other", ..KUBERNETES };
        assert_ne!(changed.directory(), KUBERNETES.directory());
        let moved = Module { go_mod: "k8s.io/kubernetes v1.2.3", ..KUBERNETES };
        assert!(moved.directory().starts_with("kubernetes-v1.2.3-"));
    }
}
