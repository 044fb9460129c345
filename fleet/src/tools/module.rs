//! The Go module that pins all programs, `fleet/tools/go.mod`, and the versions in it.
//!
//! It is one module, so that the programs share what they are compiled from: etcd and CoreDNS have the versions that kubeadm of
//! this Kubernetes installs, and nearly all of their dependencies are Kubernetes' own.

use sha2::{Digest, Sha256};

/// The module whose version is that of all Kubernetes programs.
pub(super) const KUBERNETES: &str = "k8s.io/kubernetes";
pub(super) const ETCD: &str = "go.etcd.io/etcd/server/v3";
pub(super) const COREDNS: &str = "github.com/coredns/coredns";
/// The Go variable that holds the version; without it the API server calls itself v0.0.0.
const VERSION_VARIABLE: &str = "k8s.io/component-base/version.gitVersion";
/// For packages that match what is before the first `=`; the last that matches counts. Nobody debugs these programs: not to
/// write what a debugger reads saves a seventh of the time, and not to inline calls a fifth. That makes programs slower, so it is
/// for packages that do little once a cluster runs.
pub(super) const COMPILER_FLAGS: [&str; 7] = [
    "all=-dwarf=false",
    "k8s.io/kubernetes/...=-dwarf=false -l",
    "k8s.io/kubectl/...=-dwarf=false -l",
    "k8s.io/client-go/applyconfigurations/...=-dwarf=false -l",
    "k8s.io/client-go/informers/...=-dwarf=false -l",
    "k8s.io/client-go/kubernetes/...=-dwarf=false -l",
    "sigs.k8s.io/kustomize/...=-dwarf=false -l",
];

pub(super) const MODULE: Module = Module {
    go_mod: include_str!("../../tools/go.mod"),
    go_sum: include_str!("../../tools/go.sum"),
    coredns: include_str!("../../tools/coredns/main.go"),
};

/// The files of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module {
    go_mod: &'static str,
    go_sum: &'static str,
    coredns: &'static str,
}

impl Module {
    /// Paths below the module's directory, and contents.
    pub(super) fn files(&self) -> [(&'static str, &'static str); 3] {
        [("go.mod", self.go_mod), ("go.sum", self.go_sum), ("coredns/main.go", self.coredns)]
    }

    /// The version of a required module.
    pub(super) fn version(&self, required: &str) -> &'static str {
        self.words().find(|words| words.0 == required).map_or("unknown", |words| words.1)
    }

    /// The lowest Go that can build it.
    pub(super) fn go(&self) -> &'static str {
        self.version("go")
    }

    pub(super) fn linker_flags(&self) -> String {
        format!("-s -w -X {VERSION_VARIABLE}={}", self.version(KUBERNETES))
    }

    /// The directory in the cache: another one whenever anything changes that the programs are made from.
    pub(super) fn directory(&self) -> String {
        let mut hash = Sha256::new();
        let files = self.files().map(|(_, content)| content);
        let linker_flags = self.linker_flags();
        for part in files.into_iter().chain(COMPILER_FLAGS).chain([&*linker_flags, std::env::consts::ARCH]) {
            hash.update(part);
            hash.update([0]);
        }
        let hex: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("kubernetes-{}-{hex}", self.version(KUBERNETES))
    }

    /// The first two words of each line, with and without `require` or `tool` before them.
    fn words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.go_mod.lines().filter_map(|line| {
            let mut words = line.trim_start_matches("require ").split_whitespace();
            Some((words.next()?, words.next()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_module_file() {
        for required in [KUBERNETES, ETCD, COREDNS] {
            assert!(MODULE.version(required).starts_with('v'), "{required}: {}", MODULE.version(required));
        }
        assert!(MODULE.go().starts_with("1."), "{}", MODULE.go());
        assert!(MODULE.linker_flags().ends_with(&format!("gitVersion={}", MODULE.version(KUBERNETES))));
    }

    #[test]
    fn any_change_is_another_directory() {
        for changed in [Module { go_sum: "other", ..MODULE }, Module { coredns: "other", ..MODULE }] {
            assert_ne!(changed.directory(), MODULE.directory());
        }
        let moved = Module { go_mod: "k8s.io/kubernetes v1.2.3", ..MODULE };
        assert!(moved.directory().starts_with("kubernetes-v1.2.3-"));
    }
}
