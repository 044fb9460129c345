//! How far the clock of an API server is ahead of ours, from header `Date` of its answers, which has whole seconds.

use http::{Request, header::DATE};
use k8s_openapi::jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use kube::client::Body;

use crate::cluster::Cluster;

/// Asks the API server; none if it does not say.
pub(crate) async fn ahead(cluster: &Cluster) -> Option<SignedDuration> {
    let request = Request::get("/version").body(Body::empty()).ok()?;
    let asked = cluster.now();
    let answer = cluster.request("ask for the time", cluster.client.send(request)).await.ok()?;
    let date = answer.headers().get(DATE)?.to_str().ok()?;
    between(date, asked, cluster.now())
}

/// What follows from a date that was said after `asked` and before `answered`.
fn between(date: &str, asked: Timestamp, answered: Timestamp) -> Option<SignedDuration> {
    let said = rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    let (before, after) = (said.duration_since(answered), said.duration_since(asked));
    Some(match after + SignedDuration::from_secs(1) {
        _ if before.is_positive() => before,
        late if late.is_negative() => after,
        _ => SignedDuration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_within_the_request_is_our_time() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let ahead = |date: &str| {
            between(date, at("2026-11-30T10:00:00.7Z"), at("2026-11-30T10:00:02.1Z"))
                .map(|ahead| ahead.as_millis())
        };
        for within in ["00", "01", "02"] {
            assert_eq!(ahead(&format!("Mon, 30 Nov 2026 10:00:{within} GMT")), Some(0), "{within}");
        }
        assert_eq!(ahead("Mon, 30 Nov 2026 10:00:12 GMT"), Some(9_900));
        assert_eq!(ahead("Mon, 30 Nov 2026 09:59:40 GMT"), Some(-20_700));
        assert_eq!(ahead("now"), None);
    }
}
