//! Refusals: errors that clients get as `Status` objects, with the messages of kube-apiserver.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Kind, request::Target, response::Response};

/// An error for the client.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(super) code: u16,
    /// Reason of the `Status`; none for a path that no handler serves, whose response is plain text.
    reason: Option<&'static str>,
    message: String,
    pub(super) details: Value,
}

pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Refusal {
    pub(super) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason: Some(reason), message: message.into(), details: json!({}) }
    }

    /// 404 for a path that leads to no resource.
    pub(super) fn no_path() -> Self {
        Self { code: 404, reason: None, message: "404 page not found".into(), details: json!({}) }
    }

    pub(super) fn bad_request(why: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", why)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub(super) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.qualified())).about(kind, name)
    }

    /// 409 for an object that exists.
    pub(super) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", kind.qualified()))
            .about(kind, name)
    }

    /// 409 for a write that is based on another version.
    pub(super) fn conflict(target: &Target) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::not_fulfilled(target, why)
    }

    /// 409 for an object that is another one than the client expects: `key` ("UID" or "ResourceVersion") differs.
    pub(super) fn precondition(target: &Target, key: &str, expected: &str, found: &str) -> Self {
        let why =
            format!("Precondition failed: {key} in precondition: {expected}, {key} in object meta: {found}");
        Self::not_fulfilled(target, &why)
    }

    fn not_fulfilled(Target { kind, name, .. }: &Target, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.qualified());
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// 410 for a version whose history is forgotten.
    pub(super) fn expired(why: impl Into<String>) -> Self {
        Self::new(410, "Expired", why)
    }

    /// 504 for a version that does not exist yet.
    pub(super) fn too_new(asked: u64, newest: u64) -> Self {
        let mut refusal =
            Self::new(504, "Timeout", format!("Too large resource version: {asked}, current: {newest}"));
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        refusal.details = json!({"causes": [cause], "retryAfterSeconds": 1});
        refusal
    }

    /// 422 with one cause per invalid field.
    pub(super) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let all: Vec<_> =
            causes.iter().map(|Cause { field, message, .. }| format!("{field}: {message}")).collect();
        let why = match all.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let name_of_kind =
            if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) };
        let mut refusal =
            Self::new(422, "Invalid", format!("{name_of_kind} {name:?} is invalid: {why}")).about(kind, name);
        refusal.details["kind"] = json!(kind.kind);
        let cause = |Cause { reason, field, message }: &Cause| json!({"reason": reason, "message": message, "field": field});
        refusal.details["causes"] = causes.iter().map(cause).collect();
        refusal
    }

    /// Names the object in the details.
    pub(super) fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details["name"] = json!(name);
        if !kind.group.is_empty() {
            self.details["group"] = json!(kind.group);
        }
        self.details["kind"] = json!(kind.plural);
        self
    }

    /// The `Status`.
    pub(super) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "code": self.code,
        });
        if let Some(reason) = self.reason.filter(|reason| !reason.is_empty()) {
            status["reason"] = json!(reason);
        }
        if self.details.as_object().is_some_and(|details| !details.is_empty()) {
            status["details"] = self.details.clone();
        }
        status
    }

    pub(super) fn response(&self) -> Response {
        let body = match self.reason {
            Some(_) => Bytes::from(self.status().to_string()),
            None => Bytes::from(format!("{}\n", self.message)),
        };
        Response::Whole { code: self.code, body }
    }
}

/// Why a field is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// As in `Status`: `FieldValueInvalid`, `FieldValueRequired`...
    pub(super) reason: &'static str,
    /// Path of the field, for example `spec.ports[0].port`.
    pub(super) field: String,
    pub(super) message: String,
}

impl Cause {
    pub(super) fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, field: field.into(), message: message.into() }
    }

    /// A value that is not valid.
    pub(super) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kind::built_in;

    fn services() -> Kind {
        built_in().find(|kind| kind.plural == "services").unwrap()
    }

    #[test]
    fn a_status_names_the_object() {
        let status = Refusal::not_found(&services(), "web").status();
        assert_eq!(status["message"], r#"services "web" not found"#);
        assert_eq!((&status["reason"], &status["code"]), (&json!("NotFound"), &json!(404)));
        assert_eq!(status["details"], json!({"name": "web", "kind": "services"}));
    }

    #[test]
    fn an_invalid_object_has_a_cause_per_field() {
        let causes = [
            Cause::new("FieldValueRequired", "spec.a", "Required value"),
            Cause::invalid("spec.b", &json!(0), "must be positive"),
        ];
        let status = Refusal::invalid(&services(), "web", &causes).status();
        let expected = r#"Service "web" is invalid: [spec.a: Required value, spec.b: Invalid value: 0: must be positive]"#;
        assert_eq!(status["message"], expected);
        assert_eq!(status["details"]["causes"][1]["field"], "spec.b");
    }
}
