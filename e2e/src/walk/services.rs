//! What the test of Services refuses.

use super::Refused;
use crate::daemon::LEADER;

pub const EXPORTER: &str = "freeport-member-east";
pub const IMPORTER: &str = "freeport-member-west";

const IMPORTS: (&str, &str) = (IMPORTER, "west");
const EXPORTS: (&str, &str) = (EXPORTER, "east");
const RECORDS: (&str, &str) = (EXPORTER, "leader");
const MERGES: (&str, &str) = (LEADER, "leader");

/// A Service is exported under the name `no-<resource>-<operation>`, and policies refuse this operation on this resource where the object's
/// name contains that.
pub const REFUSED: &[Refused] = &[
    Refused::new(IMPORTS, "Service", ("services", "create"), "create"),
    Refused::new(IMPORTS, "Service", ("services", "update"), "patch"),
    Refused::new(IMPORTS, "Service", ("services", "delete"), "delete"),
    Refused::new(IMPORTS, "ServiceImport", ("serviceimports", "create"), "create"),
    Refused::new(IMPORTS, "ServiceImport", ("serviceimports", "update"), "patch"),
    Refused::new(IMPORTS, "ServiceImport", ("serviceimports", "delete"), "delete"),
    Refused::new(IMPORTS, "ServiceImport", ("serviceimportsstatus", "update"), "status"),
    Refused::new(IMPORTS, "EndpointSlice", ("endpointslices", "create"), "create"),
    Refused::new(IMPORTS, "EndpointSlice", ("endpointslices", "update"), "patch"),
    Refused::new(IMPORTS, "EndpointSlice", ("endpointslices", "delete"), "delete"),
    Refused::new(RECORDS, "ResourceExport", ("resourceexports", "create"), "create"),
    Refused::new(RECORDS, "ResourceExport", ("resourceexports", "update"), "patch"),
    Refused::new(RECORDS, "ResourceExport", ("resourceexports", "delete"), "delete"),
    Refused::new(EXPORTS, "ServiceExport", ("serviceexportsstatus", "update"), "status"),
    Refused::new(MERGES, "ResourceImport", ("resourceimports", "create"), "create"),
    Refused::new(MERGES, "ResourceImport", ("resourceimports", "update"), "patch"),
    Refused::new(MERGES, "ResourceImport", ("resourceimports", "delete"), "delete"),
];
