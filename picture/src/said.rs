//! Codes of what the conditions of exports and imports say. `why` and `check` say the same of them.

use api::{
    condition::AntreaCondition,
    mcs::{READY, VALID},
};

use crate::view::{ServiceExportView, ServiceImportView};

/// Reasons of condition `Valid` by which the leader does not accept the export.
pub(crate) const NOT_ACCEPTED: [&str; 2] = ["TooManyPorts", "InvalidService"];

/// Reason and message of a condition.
pub(crate) fn words(condition: &AntreaCondition) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}: {}", text(&condition.reason), text(&condition.message))
}

/// The condition `Valid` of an export that is not valid, and its code.
pub(crate) fn invalid(export: &ServiceExportView) -> Option<(u16, &AntreaCondition)> {
    let valid = export.condition(VALID).filter(|valid| is_false(valid))?;
    let code = match valid.reason.as_deref().unwrap_or_default() {
        reason if NOT_ACCEPTED.contains(&reason) => 301,
        "NoService" => 202,
        "InvalidServiceType"
            if valid.message.as_deref().is_some_and(|message| message.contains("ExternalName")) =>
        {
            203
        }
        "NamespaceExcluded" => 204,
        _ => 205,
    };
    Some((code, valid))
}

/// The condition `Ready` of an export that is not in the Common Area, and its code.
pub(crate) fn not_recorded(export: &ServiceExportView) -> Option<(u16, &AntreaCondition)> {
    let ready = export.condition(READY)?;
    let code = match ready.reason.as_deref().unwrap_or_default() {
        "Failed" if is_false(ready) => 301,
        "Refused" if is_false(ready) => 302,
        "Pending" => 303,
        _ => return None,
    };
    Some((code, ready))
}

/// The condition `Ready` of an import that is not ready, and its code.
pub(crate) fn not_ready(import: &ServiceImportView) -> Option<(u16, &AntreaCondition)> {
    let ready = import.condition(READY).filter(|ready| ready.status.as_deref() != Some("True"))?;
    let code = match ready.reason.as_deref().unwrap_or_default() {
        "ServiceNameTaken" => 502,
        "IPFamilyNotSupported" => 504,
        "NotOurs" => 505,
        reason if reason.ends_with("Refused") => 503,
        _ => 506,
    };
    Some((code, ready))
}

/// The code of a conflict. A condition has all reasons at once.
pub(crate) fn conflict(reason: &str) -> u16 {
    match reason {
        reason if reason.contains("PortConflict") => 401,
        reason if reason.contains("TypeConflict") => 402,
        _ => 403,
    }
}

fn is_false(condition: &AntreaCondition) -> bool {
    condition.status.as_deref() == Some("False")
}
