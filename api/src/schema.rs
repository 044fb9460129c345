//! Parts of schemas that several kinds have.

use schemars::{Schema, SchemaGenerator, json_schema};

/// An object whose fields are not ours to describe: kept as it is.
pub(crate) fn preserved_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
