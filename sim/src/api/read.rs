//! Reads: one object, lists, and lists in pages.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;

use super::{
    State,
    refusal::{Refusal, Result},
    request::{Request, Target},
    response::{Representation, Response},
    selector::Selector,
    store::Object,
};

/// Number of pages that are kept for clients that ask for the rest of a list.
const PAGES: usize = 1000;

/// Rests of lists, by token.
#[derive(Default)]
pub(super) struct Pages {
    rests: BTreeMap<u64, (Vec<Arc<Object>>, u64)>,
    next: u64,
}

impl Pages {
    /// No pages; tokens that were given stay invalid.
    pub(super) fn emptied(&self) -> Self {
        Self { rests: BTreeMap::new(), next: self.next }
    }

    /// Keeps the rest of a list that was read at `version`; returns the token for it.
    fn keep(&mut self, rest: Vec<Arc<Object>>, version: u64) -> u64 {
        self.next += 1;
        self.rests.insert(self.next, (rest, version));
        if self.rests.len() > PAGES {
            self.rests.pop_first();
        }
        self.next
    }

    fn get(&self, token: &str) -> Result<(Vec<Arc<Object>>, u64)> {
        let rest = token.parse().ok().and_then(|token: u64| self.rests.get(&token).cloned());
        rest.ok_or_else(|| {
            Refusal::expired(
                "The provided continue parameter is too old to display a consistent list result.",
            )
        })
    }
}

impl State {
    pub(super) fn find(&self, target: &Target) -> Result<Arc<Object>> {
        let found = self.get(&target.kind.group, &target.kind.plural, &target.key());
        found.cloned().ok_or_else(|| Refusal::not_found(&target.kind, &target.name))
    }

    pub(super) fn read(&self, target: &Target, representation: &Representation) -> Result<Response> {
        let object = self.find(target)?;
        Ok(Response::Whole { code: 200, body: representation.write(&object, &target.kind) })
    }

    /// Objects of a collection that a selector selects.
    pub(super) fn selected(&self, target: &Target, selector: &Selector) -> Vec<Arc<Object>> {
        let kind = &target.kind;
        let selects = |object: &&Arc<Object>| selector.selects(&object.value);
        if target.namespace.is_empty() {
            let all = self.objects(&kind.group, &kind.plural);
            return all.map(|(_, object)| object).filter(selects).cloned().collect();
        }
        self.within(kind, &target.namespace).map(|(_, object)| object).filter(selects).cloned().collect()
    }

    pub(super) fn list(
        &mut self,
        target: &Target,
        request: &Request,
        representation: &Representation,
    ) -> Result<Response> {
        let (mut objects, version) = match request.parameter("continue") {
            "" => {
                let asked = request.version()?;
                if asked > self.version {
                    return Err(Refusal::too_new(asked, self.version));
                }
                (self.selected(target, &request.selector()?), self.version)
            }
            token => self.pages.get(token)?,
        };
        let mut metadata = json!({"resourceVersion": version.to_string()});
        let limit: usize = request.parameter("limit").parse().unwrap_or(0);
        if limit > 0 && objects.len() > limit {
            let rest = objects.split_off(limit);
            let is_counted =
                ["labelSelector", "fieldSelector"].iter().all(|key| request.parameter(key).is_empty());
            if is_counted {
                metadata["remainingItemCount"] = json!(rest.len());
            }
            metadata["continue"] = json!(self.pages.keep(rest, version).to_string());
        }
        let objects = objects.iter().map(|object| &**object);
        Ok(Response::Whole { code: 200, body: representation.write_list(objects, &metadata, &target.kind) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::api::testkit::{MAPS, map, send, server};

    fn names(list: &Value) -> Vec<&str> {
        list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect()
    }

    #[test]
    fn a_list_in_pages_is_of_one_version() {
        let server = server();
        ["a", "b", "c"].iter().for_each(|name| server.install(&map(name, "web")));
        let (_, first) = send(&server, "GET", &format!("{MAPS}?limit=2"), &Value::Null);
        assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &1.into()));
        server.remove("", "configmaps", "shop", "c");
        let token = first["metadata"]["continue"].as_str().unwrap();
        let next = format!("{MAPS}?limit=2&continue={token}");
        let (_, second) = send(&server, "GET", &next, &Value::Null);
        assert_eq!(names(&second), ["c"]);
        assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        server.restore(&server.back_up());
        assert_eq!(send(&server, "GET", &next, &Value::Null).0, 410);
    }

    #[test]
    fn a_version_of_the_future_is_not_there_yet() {
        let server = server();
        let (code, status) = send(&server, "GET", &format!("{MAPS}?resourceVersion=99999"), &Value::Null);
        assert_eq!(
            (code, &status["details"]["causes"][0]["reason"]),
            (504, &"ResourceVersionTooLarge".into())
        );
    }

    #[test]
    fn paths_without_a_resource_get_404_and_other_methods_405() {
        let server = server();
        assert_eq!(send(&server, "GET", "/apis/example.com/v2/widgets", &Value::Null), (404, Value::Null));
        assert_eq!(send(&server, "GET", &format!("{MAPS}/m/status"), &Value::Null), (404, Value::Null));
        assert_eq!(send(&server, "PUT", MAPS, &Value::Null).0, 405);
    }
}
