//! Members that run Antrea's controllers: who they are, and how they leave. What is different about their records is in
//! [`service`](crate::service).

pub(crate) mod leaving;

use api::{antrea::Members, label};
use kit::objects::Objects;
use kube::ResourceExt;

use crate::account::Account;

/// The members whose ServiceAccounts are marked.
pub(crate) fn marked(accounts: &Objects<Account>) -> Members {
    let is_marked =
        |account: &&Account| account.annotations().get(label::SPEAKS).is_some_and(|v| v == label::ANTREA);
    let marked = accounts.iter().filter(is_marked);
    Members::of(marked.filter_map(|account| account.annotations().get(label::CLUSTER_ID).cloned()))
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn marked_accounts_are_members() {
        let account = |name: &str, annotations: Value| {
            serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}})).unwrap()
        };
        let speaks = "multicluster.freeport.dev/speaks";
        let mut accounts = Objects::default();
        accounts.change(Change::Reset(vec![
            account("a", json!({speaks: "antrea", "multicluster.antrea.io/cluster-id": "north-1"})),
            account("b", json!({"multicluster.antrea.io/cluster-id": "east"})),
            account("c", json!({speaks: "antrea"})),
        ]));
        assert_eq!(marked(&accounts), Members::named("north-1"));
        accounts.change(Change::Remove(account("a", json!({}))));
        assert!(marked(&accounts).is_empty());
    }
}
