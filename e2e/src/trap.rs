//! At which of its writes a daemon is killed. Pure.

use http::{Method, Uri};

/// On which side of a write a daemon is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The API server never gets the request.
    Before,
    /// The API server has carried it out, and the daemon does not hear of it.
    After,
}

/// Kills at one write.
#[derive(Clone, Debug)]
pub struct Trap {
    /// What the write has to be about: a text in its path or body. Every write has the empty one.
    pub about: String,
    /// Which of those writes; the first is 1.
    pub nth: usize,
    pub side: Side,
    /// Writes that do not count, as [`named`].
    pub spared: Vec<String>,
}

impl Trap {
    /// At the n-th write, whatever it is about.
    pub fn at(nth: usize, side: Side) -> Self {
        Self { about: String::new(), nth, side, spared: Vec::new() }
    }

    /// Writes about nothing else do not count.
    pub fn about(self, about: &str) -> Self {
        Self { about: about.to_owned(), ..self }
    }

    /// Counts a request that the daemon sends; where it is killed, if it is.
    pub fn springs(&mut self, method: &Method, uri: &Uri, body: &[u8]) -> Option<Side> {
        if !is_counted(method, uri) || !self.is_about(uri, body) || self.spared.contains(&named(method, uri))
        {
            return None;
        }
        self.nth = self.nth.checked_sub(1)?;
        (self.nth == 0).then_some(self.side)
    }

    fn is_about(&self, uri: &Uri, body: &[u8]) -> bool {
        let about = self.about.as_bytes();
        about.is_empty()
            || uri.path().contains(&self.about)
            || body.windows(about.len()).any(|part| part == about)
    }
}

/// A request in words: its method and path.
pub fn named(method: &Method, uri: &Uri) -> String {
    format!("{method} {}", uri.path())
}

/// Whether the request may change an object.
pub fn is_write(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method)
}

/// Whether the request is a step of what a daemon does. Those that come and go with the time are none: Leases (but not their deletion),
/// Events, dry runs and questions about rights.
fn is_counted(method: &Method, uri: &Uri) -> bool {
    let is_kind = |kind: &str| uri.path().split('/').any(|part| part == kind);
    let is_question =
        uri.query().is_some_and(|query| query.contains("dryRun")) || uri.path().ends_with("reviews");
    let is_renewal = is_kind("leases") && *method != Method::DELETE;
    is_write(method) && !is_question && !is_renewal && !is_kind("events")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sprung(trap: &mut Trap, method: &Method, uri: &str, body: &str) -> Option<Side> {
        trap.springs(method, &uri.parse().unwrap(), body.as_bytes())
    }

    #[test]
    fn springs_once_at_the_nth_write_about_something() {
        let mut trap = Trap::at(2, Side::After).about("web");
        assert_eq!(
            sprung(&mut trap, &Method::POST, "/api/v1/namespaces/a/services", r#"{"name":"web"}"#),
            None
        );
        assert_eq!(
            sprung(&mut trap, &Method::POST, "/api/v1/namespaces/a/services", r#"{"name":"db"}"#),
            None
        );
        assert_eq!(sprung(&mut trap, &Method::GET, "/api/v1/namespaces/a/services/web", ""), None);
        let delete = "/api/v1/namespaces/a/services/antrea-mc-web";
        assert_eq!(sprung(&mut trap, &Method::DELETE, delete, ""), Some(Side::After));
        assert_eq!(sprung(&mut trap, &Method::DELETE, delete, ""), None);
        let mut spares = Trap { spared: vec![format!("DELETE {delete}")], ..Trap::at(1, Side::Before) };
        assert_eq!(sprung(&mut spares, &Method::DELETE, delete, ""), None);
    }

    #[test]
    fn what_comes_with_the_time_is_not_counted() {
        let lease = "/apis/coordination.k8s.io/v1/namespaces/a/leases/web";
        for (method, uri) in [
            (&Method::GET, "/api/v1/services"),
            (&Method::PATCH, lease),
            (&Method::POST, "/apis/events.k8s.io/v1/namespaces/a/events"),
            (&Method::POST, "/api/v1/namespaces/a/services?dryRun=All&fieldManager=x"),
            (&Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ] {
            assert_eq!(sprung(&mut Trap::at(1, Side::Before), method, uri, ""), None, "{uri}");
        }
        assert_eq!(sprung(&mut Trap::at(1, Side::Before), &Method::DELETE, lease, ""), Some(Side::Before));
    }
}
