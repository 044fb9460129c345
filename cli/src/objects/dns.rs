//! The right of CoreDNS to watch imports, in a ClusterRole of its own, which no upgrade of the cluster undoes.

use super::{
    Object,
    rights::{Account, MCS, everywhere_as, rule},
};

/// Name of the ClusterRole and of its binding.
pub const NAME: &str = "coredns-serviceimports";

/// ClusterRole and binding for the ServiceAccount that CoreDNS is.
pub fn objects(namespace: &str, account: &str) -> [Object; 2] {
    let rules = vec![rule(MCS, "serviceimports", &["list", "watch"])];
    everywhere_as(NAME, &Account { namespace, name: account }, rules)
}
