//! Writes of daemons that a cluster's administrator forbids, as a ValidatingAdmissionPolicy does.

use std::collections::BTreeSet;

use super::{
    State,
    refusal::{Refusal, Result},
    request::{Request, Target},
};
use crate::invariant::Author;

/// Message of a refusal.
pub const NOT_THIS_ONE: &str = "not this one";

/// Resources, each followed by its subresource (`serviceimportsstatus`), and operations (`create`, `update`, `delete`).
pub(super) type Forbidden = BTreeSet<(String, String)>;

impl State {
    /// Refuses a write of a daemon that is forbidden.
    pub(super) fn check_policy(&self, forbidden: &Forbidden, request: &Request) -> Result<()> {
        if forbidden.is_empty() || !matches!(request.author, Author::Daemon(_)) || request.method == "GET" {
            return Ok(());
        }
        // What leads nowhere gets another answer.
        let Ok(target) = self.target(&request.path) else { return Ok(()) };
        let Some(operation) = self.operation(&target, request) else { return Ok(()) };
        let resource = format!("{}{}", target.kind.plural, target.subresource);
        if !forbidden.contains(&(resource, operation.to_owned())) {
            return Ok(());
        }
        let (kind, name) = (&target.kind, &target.name);
        let policy = "ValidatingAdmissionPolicy 'no-writes' with binding 'no-writes' denied request";
        let message = format!("{} {name:?} is forbidden: {policy}: {NOT_THIS_ONE}", kind.qualified());
        Err(Refusal::new(422, "Invalid", message).about(kind, name))
    }

    /// What an API server asks its policies about; nothing for a change of an object that does not exist.
    fn operation(&self, target: &Target, request: &Request) -> Option<&'static str> {
        let is_there = self.find(target).is_ok();
        let is_apply = request.content_type.contains("apply-patch");
        match request.method.as_str() {
            "POST" => Some("create"),
            "PATCH" if is_apply && !is_there => Some("create"),
            "PATCH" | "PUT" if is_there => Some("update"),
            "DELETE" if is_there => Some("delete"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        api::testkit::{MAPS, map, server},
        invariant::Process,
    };

    #[test]
    fn what_is_forbidden_to_daemons_is_refused_to_them_alone() {
        let server = server();
        let daemon = Author::Daemon(Process { program: "p", cluster: "east".into(), replica: None });
        let ask = |method: &str, path: &str, author: &Author| {
            let request = Request {
                method: method.into(),
                path: path.into(),
                content_type: "application/merge-patch+json".into(),
                author: author.clone(),
                body: if method == "DELETE" { json!({}) } else { map("m", "a") }.to_string().into(),
                ..Request::default()
            };
            match server.answer(&request) {
                crate::api::Response::Whole { code, .. } => code,
                _ => 0,
            }
        };
        let one = format!("{MAPS}/m");
        server.forbid(&[("configmaps", "create"), ("configmaps", "delete")]);
        assert_eq!(ask("DELETE", &one, &daemon), 404);
        assert_eq!(ask("POST", MAPS, &daemon), 422);
        assert_eq!(ask("POST", MAPS, &Author::Other), 201);
        assert_eq!(ask("PATCH", &one, &daemon), 200);
        assert_eq!(ask("DELETE", &one, &daemon), 422);
        server.forbid(&[]);
        assert_eq!(ask("DELETE", &one, &daemon), 200);
    }
}
