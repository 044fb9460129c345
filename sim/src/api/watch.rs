//! Watches: initial objects, changes from a version on, bookmarks.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::{Duration, Instant},
};

use super::{
    Kind, State,
    refusal::{Cause, Refusal, Result},
    request::{Request, Target},
    response::{Representation, Response},
    selector::Selector,
    store::{Change, Object},
};

/// Time between two bookmarks of a watch.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// Seconds that a watch lasts if the client does not limit it.
const LIFE: u64 = 1800;

/// A line of a watch, and when it was sent.
pub struct WatchEvent {
    pub at: Instant,
    pub line: Bytes,
}

/// An open watch.
pub(super) struct Watcher {
    /// Changes up to this version are not sent.
    from: u64,
    namespace: Option<String>,
    selector: Selector,
    representation: Representation,
    /// When the last bookmark was sent; none if the client wants none.
    bookmarked: Option<Instant>,
    events: UnboundedSender<WatchEvent>,
}

/// What a watch starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// All objects, and a bookmark at their end if `is_marked`.
    Objects { is_marked: bool },
    /// Changes after this version.
    Version(u64),
}

impl Start {
    fn of(request: &Request, target: &Target, newest: u64) -> Result<Self> {
        let version = request.version()?;
        let matches = request.parameter("resourceVersionMatch");
        if request.is_set("sendInitialEvents") {
            if matches != "NotOlderThan" {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                let cause =
                    Cause::new("FieldValueForbidden", "resourceVersionMatch", format!("Forbidden: {why}"));
                return Err(Refusal::invalid(&target.kind, "", &[cause]));
            }
            if version > newest {
                return Err(Refusal::too_new(version, newest));
            }
            return Ok(Self::Objects { is_marked: request.is_set("allowWatchBookmarks") });
        }
        let is_unwanted = request.query.contains_key("sendInitialEvents");
        Ok(match version {
            0 if is_unwanted => Self::Version(newest),
            0 => Self::Objects { is_marked: false },
            version => Self::Version(version),
        })
    }
}

impl State {
    pub(super) fn watch(
        &mut self,
        target: &Target,
        request: &Request,
        representation: Representation,
    ) -> Result<Response> {
        let start = Start::of(request, target, self.version)?;
        let (sender, events) = unbounded_channel();
        let mut watcher = Watcher {
            from: self.version,
            namespace: Some(target.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            selector: request.selector()?,
            representation,
            bookmarked: request.is_set("allowWatchBookmarks").then(Instant::now),
            events: sender,
        };
        let kind = target.kind.clone();
        match start {
            Start::Objects { is_marked } => {
                let objects = self.selected(target, &watcher.selector);
                objects.iter().for_each(|object| watcher.send("ADDED", object, &kind));
                if is_marked {
                    watcher.send_bookmark(self.version, true, &kind);
                }
            }
            Start::Version(version) => {
                watcher.from = version;
                let oldest = self.oldest(&kind);
                if version < oldest {
                    let why = format!("too old resource version: {version} ({oldest})");
                    watcher.send_line("ERROR", Refusal::expired(why).status().to_string().as_bytes());
                    return Ok(Response::Watch { events, seconds: 1 });
                }
                let changes = self.collection(&kind).history.iter();
                changes.for_each(|change| watcher.send_change(change, &kind));
            }
        }
        self.collection(&kind).watchers.push(watcher);
        Ok(Response::Watch { events, seconds: request.parameter("timeoutSeconds").parse().unwrap_or(LIFE) })
    }

    /// Sends the bookmarks that are due.
    pub(crate) fn send_bookmarks(&mut self) {
        let (version, now) = (self.version, Instant::now());
        let kinds: Vec<_> = self.kinds().cloned().collect();
        for kind in kinds {
            let watchers = self.collection(&kind).watchers.iter_mut();
            for watcher in
                watchers.filter(|watcher| watcher.bookmarked.is_some_and(|last| now - last >= BOOKMARKS))
            {
                watcher.bookmarked = Some(now);
                watcher.send_bookmark(version, false, &kind);
            }
        }
    }
}

impl Watcher {
    pub(super) fn is_open(&self) -> bool {
        !self.events.is_closed()
    }

    fn selects(&self, object: &Value) -> bool {
        let is_within = |namespace: &String| object["metadata"]["namespace"] == namespace.as_str();
        self.namespace.as_ref().is_none_or(is_within) && self.selector.selects(object)
    }

    /// Sends a change as it looks through the selector: an object that is no longer selected is deleted.
    pub(super) fn send_change(&self, change: &Change, kind: &Kind) {
        if change.version <= self.from {
            return;
        }
        let was_selected = change.before.as_ref().is_some_and(|before| self.selects(&before.value));
        let is_selected = !change.is_deletion && self.selects(&change.object.value);
        match (was_selected, is_selected) {
            (false, true) => self.send("ADDED", &change.object, kind),
            (true, true) => self.send("MODIFIED", &change.object, kind),
            (true, false) if change.is_deletion => self.send("DELETED", &change.object, kind),
            (true, false) => {
                let mut last = change.before.as_ref().map(|before| before.value.clone()).unwrap_or_default();
                last["metadata"]["resourceVersion"] = json!(change.version.to_string());
                self.send("DELETED", &Object::new(last, kind.revision), kind);
            }
            (false, false) => {}
        }
    }

    fn send(&self, what: &str, object: &Object, kind: &Kind) {
        self.send_line(what, &self.representation.write(object, kind));
    }

    fn send_bookmark(&self, version: u64, ends_initial_events: bool, kind: &Kind) {
        let (api_version, kind) = self.representation.type_of(kind);
        let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let bookmark = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        self.send_line("BOOKMARK", bookmark.to_string().as_bytes());
    }

    fn send_line(&self, what: &str, object: &[u8]) {
        let line = [br#"{"type":""#, what.as_bytes(), br#"","object":"#, object, b"}\n"].concat();
        // A closed watch is removed at the next change of its collection.
        let _ = self.events.send(WatchEvent { at: Instant::now(), line: Bytes::from(line) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{MAPS, events, map, send, server, watch};

    /// Types of the events, and names of their objects.
    fn names(watch: &mut tokio::sync::mpsc::UnboundedReceiver<WatchEvent>) -> Vec<(String, String)> {
        let name = |object: Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        events(watch).into_iter().map(|(what, object)| (what, name(object))).collect()
    }

    fn event(what: &str, name: &str) -> (String, String) {
        (what.into(), name.into())
    }

    #[test]
    fn a_watch_sends_the_changes_after_its_version() {
        let server = server();
        server.install(&map("a", "web"));
        let version = server.version();
        server.install(&map("b", "web"));
        let mut watch = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={version}"));
        server.remove("", "configmaps", "shop", "a");
        assert_eq!(names(&mut watch), [event("ADDED", "b"), event("DELETED", "a")]);
    }

    #[test]
    fn an_object_that_is_no_longer_selected_is_deleted() {
        let server = server();
        server.install(&map("a", "web"));
        let mut watch = watch(&server, &format!("{MAPS}?watch=true&labelSelector=app=web"));
        server.install(&map("a", "api"));
        server.install(&map("a", "web"));
        assert_eq!(names(&mut watch), [event("ADDED", "a"), event("DELETED", "a"), event("ADDED", "a")]);
    }

    #[test]
    fn a_watch_from_a_forgotten_version_gets_410() {
        let server = server();
        let version = server.version();
        server.install(&map("a", "web"));
        server.restore(&server.back_up());
        let events = events(&mut watch(&server, &format!("{MAPS}?watch=true&resourceVersion={version}")));
        let [(what, status)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(
            (what.as_str(), &status["code"], &status["reason"]),
            ("ERROR", &json!(410), &json!("Expired"))
        );
    }

    #[test]
    fn initial_events_end_with_a_bookmark() {
        let server = server();
        server.install(&map("a", "web"));
        let query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true";
        let mut watch = watch(&server, &format!("{MAPS}?{query}&resourceVersionMatch=NotOlderThan"));
        let events = events(&mut watch);
        assert_eq!(events.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), ["ADDED", "BOOKMARK"]);
        let metadata = &events[1].1["metadata"];
        assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
        assert_eq!(metadata["resourceVersion"], server.version().to_string());
        assert_eq!(send(&server, "GET", &format!("{MAPS}?{query}"), &Value::Null).0, 422);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bookmark_is_sent_each_minute() {
        let server = server();
        let version = server.version();
        let path = format!("{MAPS}?watch=true&resourceVersion={version}");
        let (mut marked, mut plain) =
            (watch(&server, &format!("{path}&allowWatchBookmarks=true")), watch(&server, &path));
        server.tick();
        events(&mut marked);
        tokio::time::advance(BOOKMARKS).await;
        server.tick();
        server.tick();
        assert_eq!(names(&mut marked), [event("BOOKMARK", "")]);
        assert!(names(&mut plain).iter().all(|(what, _)| what != "BOOKMARK"));
    }
}
