//! The change, from files.

use std::path::Path;

use api::mcs::ServiceExport;
use kube::Resource;
use picture::plan::{Change, Export, Service, TargetPorts};
use serde_json::{Value, json};

use super::files::{self, Found};
use crate::Error;

/// The objects that a file or a folder has; those that name no Namespace are in this one.
pub(super) fn read(path: &Path, namespace: &str) -> Result<Vec<Change>, Error> {
    let found = files::read(path)?;
    if found.is_empty() {
        let path = path.display();
        return Err(Error::Argument(format!(
            "{path}: no object. try: a file with a ServiceExport or a Service"
        )));
    }
    let changes: Result<Vec<_>, Error> = found.into_iter().map(|found| change(found, namespace)).collect();
    Ok(changes?.into_iter().flatten().collect())
}

fn change(mut found: Found, namespace: &str) -> Result<Vec<Change>, Error> {
    let group = found.api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
    let of_name = found.value.pointer("/metadata/name").and_then(Value::as_str);
    if of_name.is_none_or(str::is_empty) {
        return Err(found.place.wrong("metadata.name is missing"));
    }
    let metadata = &mut found.value["metadata"];
    if metadata.get("namespace").is_none_or(Value::is_null) {
        metadata["namespace"] = json!(namespace);
    }
    match found.kind.as_str() {
        "ServiceExport" if group == ServiceExport::group(&()) => {
            Ok(vec![Change::Export(found.decode::<Export>()?)])
        }
        "Service" if group.is_empty() => {
            let ports = found.decode::<TargetPorts>()?;
            Ok(vec![Change::Service(found.decode::<Service>()?), Change::TargetPorts(ports)])
        }
        kind => Err(Error::Argument(format!(
            "{}: plan knows no kind {kind} of {}. try: a file with ServiceExports ({}) and Services (v1) alone",
            found.place,
            found.api_version,
            ServiceExport::api_version(&())
        ))),
    }
}
