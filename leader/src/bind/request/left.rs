//! BoundSchemas that no export has: a request left them that was not granted to its end, since its leader was killed, or its export refused
//! until somebody deleted the request.

use api::{
    bind::{bound_schema::BoundSchema, carried, label},
    view::Tolerant,
};
use kit::write::{Error, Writer};
use kube::{Resource, ResourceExt};

use super::{Requests, exports::Exports};
use crate::bind::known::Known;

/// Reports whether a provider made the BoundSchema from a CRD: it notes the hash of it.
pub(in crate::bind) fn is_made_here<P: Resource>(schema: &P) -> bool {
    schema.annotations().contains_key(label::SOURCE_SPEC_HASH)
}

/// Those of a cluster namespace.
pub(super) fn left(cluster_namespace: &str, known: &Known) -> Vec<BoundSchema> {
    let bound = known.bound(cluster_namespace);
    let schemas = known.schemas.within(cluster_namespace);
    let is_left = |schema: &&BoundSchema| !bound.contains_key(&schema.name_any()) && is_made_here(*schema);
    schemas.filter(is_left).cloned().collect()
}

/// Writes a schema of which there is no export. One that was left is made anew where it is not what is offered now.
///
/// # Errors
/// [`Error::NotOurs`] where somebody made another one by hand.
pub(super) async fn renew(writer: &Writer, want: &BoundSchema) -> Result<(), Error> {
    let named = Tolerant { metadata: want.metadata.clone(), object: Ok(want.clone()) };
    match writer.read(&named).await {
        Ok(there) => match &there.object {
            Ok(is) if carried::hash([&is.spec]) == carried::hash([&want.spec]) => return Ok(()),
            _ if !is_made_here(&there) => {
                return Err(Error::NotOurs { kind: "BoundSchema".to_owned(), name: want.name_any() });
            }
            _ => writer.delete(&there, false).await?,
        },
        Err(Error::Gone) => {}
        Err(error) => return Err(error),
    }
    writer.put(None, want).await.map(drop)
}

impl Requests {
    /// Deletes the schemas that no export has, for whoever has the turn. Whether that is done: it is to be tried again where it is not known
    /// yet which these are. Where an export cannot be read, they stay until the next request goes.
    pub(super) async fn delete_left(&self, cluster_namespace: &str) -> Result<bool, Error> {
        let left = self.knowledge.known.with(|known| left(cluster_namespace, known));
        if left.is_empty() {
            return Ok(true);
        }
        match self.exports(cluster_namespace).await? {
            Exports::Known => {}
            Exports::Behind => return Ok(false),
            Exports::Unreadable(_) => return Ok(true),
        }
        for schema in &left {
            self.writer.delete(schema, false).await?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::*;
    use crate::bind::request::fixture::{CNS, exports, known};

    #[test]
    fn a_schema_that_no_export_has_is_left() {
        let mut known = known(&[], "");
        exports(&mut known, "one", "Prefixed", "Namespaced");
        let names = |known: &Known| left(CNS, known).iter().map(ResourceExt::name_any).collect::<Vec<_>>();
        assert_eq!(names(&known), [""; 0]);
        known.exports.change(Change::Reset(vec![]));
        assert_eq!(names(&known), ["n.g"]);
        assert!(left("another", &known).is_empty());
        let made = left(CNS, &known).remove(0);
        let mut by_hand = made.clone();
        by_hand.metadata.annotations = None;
        known.schemas.change(Change::Apply(serde_json::from_value(json!(by_hand)).unwrap()));
        assert_eq!(names(&known), [""; 0], "no provider made it");
        known.schemas.change(Change::Apply(serde_json::from_value(json!(made)).unwrap()));
        let going = json!({"metadata": {"name": "one", "namespace": CNS, "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"informerScope": "Namespaced", "isolation": "Prefixed", "resources": [{"group": "g", "resource": "n"}]}});
        known.exports.change(Change::Apply(serde_json::from_value(going).unwrap()));
        assert_eq!(names(&known), [""; 0], "it takes its schemas along when it goes");
    }
}
