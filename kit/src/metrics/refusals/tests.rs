use super::*;
use crate::metrics::Metrics;

fn request(cluster: &'static str, verb: &str, name: &str) -> Request {
    let (kind, namespace) = ("Service".to_owned(), Some("shop".to_owned()));
    let (area, verb, name) = ("".into(), verb.to_owned(), name.to_owned());
    Request { area, part: "", cluster, verb, group: String::new(), kind, namespace, name }
}

/// Refused twice, so long apart that it counts.
fn refuse(refusals: &Refusals, request: &Request, words: &str, now: Instant) {
    refusals.put(request.clone(), words.to_owned(), now);
    refusals.put(request.clone(), words.to_owned(), now + LASTING);
}

#[test]
fn what_is_refused_for_a_while_is_said_until_it_is_accepted_or_not_wanted_any_more() {
    let (metrics, now) = (Metrics::new().unwrap(), Instant::now());
    let refusals = metrics.refusals();
    let counted = |count: usize| {
        let text = String::from_utf8(metrics.render().unwrap().1).unwrap();
        let line = format!(
            "freeport_writes_refused{{cluster=\"local\",common_area=\"\",kind=\"Service\",verb=\"delete\"}} {count}\n"
        );
        assert!(text.contains(&line), "{line}{text}");
    };
    let (web, api) = (request("local", "delete", "web"), request("local", "create", "api"));
    refusals.put(web.clone(), "no".into(), now);
    assert_eq!(refusals.message(""), None, "it may be over in a moment");
    refusals.put(web.clone(), "no".into(), now + LASTING);
    assert_eq!(
        refusals.message("").unwrap(),
        "the API server of this cluster refuses to delete Service shop/web: \"no\""
    );
    assert_eq!(
        refusals.message("clusterset-other"),
        refusals.message(""),
        "a leader, outside of Common Areas"
    );
    let of_area = Request { area: "clusterset-demo".into(), ..request("local", "create", "of-area") };
    refuse(refusals, &of_area, "no", now);
    assert!(refusals.message("clusterset-demo").unwrap().contains("of-area"));
    assert!(!refusals.message("clusterset-other").unwrap().contains("of-area"));
    refusals.remove(&of_area);
    assert_eq!(refusals.message_of(|request| request.name == "web"), refusals.message(""));
    assert_eq!(refusals.verdict_of(|request| request.name == "api"), None);
    counted(1);
    refuse(refusals, &api, "quota", now);
    let both = refusals.message("").unwrap();
    assert!(both.contains("create Service shop/api, delete Service shop/web: \"quota\""), "{both}");
    refusals.remove(&web);
    counted(0);
    assert!(!refusals.message("").unwrap().contains("web"));
    refusals.prune(now + LASTING + STALE);
    assert!(refusals.message("").is_some());
    refusals.prune(now + LASTING + STALE + LASTING);
    assert_eq!(refusals.message(""), None);
}

#[test]
fn a_refusal_that_nobody_wants_any_more_is_gone_from_the_status_within_a_minute() {
    assert!(STALE + LASTING + COLLECTED < Duration::from_secs(60));
    let metrics = Metrics::new().unwrap();
    let (refusals, now, web) = (metrics.refusals(), Instant::now(), request("local", "create", "web"));
    refuse(refusals, &web, "no", now);
    // The longest back-off of a controller.
    refusals.prune(now + LASTING + Duration::from_secs(30));
    assert!(refusals.message("").is_some());
    refusals.prune(now + Duration::from_secs(60));
    assert_eq!(refusals.message(""), None);
}

#[test]
fn kinds_of_two_groups_are_refused_apart() {
    let (metrics, now) = (Metrics::new().unwrap(), Instant::now());
    let refusals = metrics.refusals();
    let [ours, others] = ["a.io", "b.io"].map(|group| Request {
        group: group.to_owned(),
        kind: "Widget".to_owned(),
        ..request("local", "patch", "w")
    });
    refuse(refusals, &ours, "no", now);
    refuse(refusals, &others, "never", now);
    let count = || String::from_utf8(metrics.render().unwrap().1).unwrap();
    let counted = |number: usize| count().contains(&format!("kind=\"Widget\",verb=\"patch\"}} {number}\n"));
    assert!(counted(2), "{}", count());
    refusals.remove(&ours);
    assert!(counted(1), "{}", count());
    let message = refusals.message("").unwrap();
    assert!(message.ends_with("change Widget shop/w: \"never\""), "{message}");
    assert_eq!(refusals.message_of(|request| request.group == "a.io"), None);
}

#[test]
fn each_api_server_has_its_sentence_and_three_names() {
    let local = ["a", "b", "c", "d", "e"].map(|name| (request("local", "patch", name), "first"));
    let all: Vec<_> = [(request("leader", "status", "x"), "second")].into_iter().chain(local).collect();
    let said = message(all.iter().map(|(request, words)| (request, *words))).unwrap();
    assert_eq!(
        said,
        "the leader's API server refuses to write the status of Service shop/x: \"second\". the API server of this cluster refuses to \
         change Service shop/a, change Service shop/b, change Service shop/c and 2 more: \"first\""
    );
    assert_eq!(message(std::iter::empty()), None);
}

#[tokio::test(start_paused = true)]
async fn who_reports_is_woken_when_something_else_is_to_be_reported() {
    let metrics = Metrics::new().unwrap();
    let (refusals, web) = (metrics.refusals(), request("local", "create", "web"));
    let is_woken = async || tokio::time::timeout(2 * COLLECTED, refusals.changed("")).await.is_ok();
    assert!(refusals.verdict("").status == Status::True && !is_woken().await);
    refuse(refusals, &web, "no", Instant::now());
    assert!(is_woken().await && is_woken().await, "until it is reported");
    assert!(refusals.verdict("").status == Status::False && !is_woken().await);
    refusals.forget("other");
    refusals.forget_those("", |request| request.part == "bind");
    assert!(refusals.message("").is_some());
    assert!(refusals.verdict("").status == Status::False && !is_woken().await);
    refusals.remove(&web);
    assert!(is_woken().await);
}

#[test]
fn what_is_refused_anew_is_news_and_another_attempt_is_not() {
    let metrics = Metrics::new().unwrap();
    let (refusals, now, web) = (metrics.refusals(), Instant::now(), request("local", "create", "web"));
    let mut changes = refusals.changed.subscribe();
    let mut is_news = || {
        let is_news = changes.has_changed().unwrap();
        changes.mark_unchanged();
        is_news
    };
    refusals.put(web.clone(), "no".into(), now);
    assert!(!is_news());
    refusals.put(web.clone(), "no".into(), now + LASTING);
    assert!(is_news());
    refusals.put(web.clone(), "no".into(), now + STALE);
    assert!(!is_news());
    refusals.put(web.clone(), "never".into(), now + STALE);
    assert!(is_news());
    refusals.remove(&web);
    assert!(is_news());
}
