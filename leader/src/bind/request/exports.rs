//! Whether requests can be judged by the exports that are known: those that are there decide what is bound already.

use std::collections::BTreeSet;

use api::{bind::export::APIServiceExport, view::Meta};
use kit::write::Error;
use kube::{Api, ResourceExt, api::ListParams};

use super::Requests;
use crate::bind::known::Known;

/// How those that are known of a cluster namespace stand to those that are there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Exports {
    /// They are the same.
    Known,
    /// They are others: the watch is behind.
    Behind,
    /// They are the same, but nobody knows what one of them has. It wakes the requests when it changes or goes.
    Unreadable(String),
}

/// Name and uid of an export.
type Named = (String, Option<String>);

fn compared(there: &BTreeSet<Named>, cluster_namespace: &str, known: &Known) -> Exports {
    let named = |export: &APIServiceExport| (export.name_any(), export.uid());
    let mut all: BTreeSet<_> = known.exports_of(cluster_namespace).map(named).collect();
    let mut unreadable = None;
    for (export, why) in known.exports.odd(cluster_namespace) {
        let name = export.name.clone().unwrap_or_default();
        unreadable.get_or_insert_with(|| {
            format!(
                "APIServiceExport {name}, which is there, cannot be read, and may have the same APIs: {why}"
            )
        });
        all.insert((name, export.uid.clone()));
    }
    match unreadable {
        _ if all != *there => Exports::Behind,
        Some(message) => Exports::Unreadable(message),
        None => Exports::Known,
    }
}

impl Requests {
    /// Asks the API server.
    pub(super) async fn exports(&self, cluster_namespace: &str) -> Result<Exports, Error> {
        let exports = Api::<Meta<APIServiceExport>>::namespaced(self.env.client.clone(), cluster_namespace);
        let there = exports.list(&ListParams::default()).await?;
        let there = there.iter().map(|export| (export.name_any(), export.uid())).collect();
        Ok(self.knowledge.known.with(|known| compared(&there, cluster_namespace, known)))
    }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::*;
    use crate::bind::request::fixture::{CNS, exports, known};

    #[test]
    fn an_export_that_does_not_decode_is_said_and_not_waited_for() {
        let mut known = known(&[], "");
        exports(&mut known, "one", "Prefixed", "Namespaced");
        let there = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), None)).collect();
        let compared = |known: &Known, names: &[&str]| super::compared(&there(names), CNS, known);
        assert_eq!(compared(&known, &["one"]), Exports::Known);
        assert_eq!(compared(&known, &["one", "two"]), Exports::Behind);
        assert_eq!(compared(&known, &[]), Exports::Behind);
        let odd = json!({"metadata": {"name": "two", "namespace": CNS}, "spec": {"isolation": "Other"}});
        known.exports.change(Change::Apply(serde_json::from_value(odd).unwrap()));
        let Exports::Unreadable(message) = compared(&known, &["one", "two"]) else { panic!() };
        assert!(message.contains("APIServiceExport two"), "{message}");
        assert_eq!(compared(&known, &["one"]), Exports::Behind);
    }
}
