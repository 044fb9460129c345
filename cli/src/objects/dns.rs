//! The right of CoreDNS to watch imports, in a ClusterRole of its own, which no upgrade of the cluster undoes.

use super::{
    Object,
    rights::{Account, MCS, everywhere_as, rule},
};

/// Name of the ClusterRole and of its binding, for the ServiceAccount that CoreDNS has in most clusters.
const NAME: &str = "coredns-serviceimports";

/// Name of the ClusterRole and of its binding: a second CoreDNS in the cluster has others.
pub fn name(namespace: &str, account: &str) -> String {
    match (namespace, account) {
        ("kube-system", "coredns") => NAME.to_owned(),
        _ => format!("{NAME}:{namespace}:{account}"),
    }
}

/// ClusterRole and binding for this ServiceAccount of CoreDNS.
pub fn objects(namespace: &str, account: &str) -> [Object; 2] {
    let rules = vec![rule(MCS, "serviceimports", &["list", "watch"])];
    everywhere_as(&name(namespace, account), &Account { namespace, name: account }, rules)
}
