//! What becomes of Pods and records, in every state of both.

use api::offload::{
    pod_status::ACCEPTED,
    seal::{KEY_LENGTH, open},
};
use serde_json::{Value, json};

use super::*;

const UID: &str = "0b0e3a5c-9f61-4b9e-8f5e-3a1de4b2a001";

fn key(n: u8) -> PrivateKey {
    PrivateKey::read(&[n; KEY_LENGTH]).unwrap()
}

/// A Pod with this status; with a grace, it is being deleted.
fn pod(status: &Value, grace: Option<i64>) -> BoundPod {
    let mut metadata = json!({"name": "web", "namespace": "shop", "uid": UID, "labels": {"app": "web"}});
    if let Some(grace) = grace {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["deletionGracePeriodSeconds"] = json!(grace);
    }
    let spec = json!({"nodeName": "freeport-east", "containers": [{"name": "web", "image": "i"}]});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn record(spec: &ShadowPodSpec, status: &Value) -> OwnShadowPod {
    serde_json::from_value(json!({"metadata": {"name": spec.name()}, "spec": spec, "status": status}))
        .unwrap()
}

/// The plan where all is well but the twin.
fn planned(entry: &PodEntry, twin: Twin<'_>) -> Plan {
    planned_as(entry, twin, false)
}

fn planned_as(entry: &PodEntry, twin: Twin<'_>, is_silent: bool) -> Plan {
    let (own, offered) = (key(1), key(2).public().to_string());
    let around = Around {
        us: "west",
        host: "east",
        twin,
        key: Some(&own),
        public_key: Some(&offered),
        is_silent,
        services: &[],
        now: Timestamp::UNIX_EPOCH,
    };
    plan(entry, entry.pod.as_ref().unwrap(), &around)
}

fn there() -> Twin<'static> {
    Twin::There("shop-west")
}

fn entry(pod: BoundPod, record: Option<OwnShadowPod>) -> PodEntry {
    PodEntry { pod: Some(pod), had_record: record.is_some(), record }
}

/// The record of a Pod that is there.
fn sent(pod: &BoundPod) -> ShadowPodSpec {
    let plan = planned(&entry(pod.clone(), None), there());
    let OfRecord::Put(spec) = plan.record else { panic!("{plan:?}") };
    *spec
}

fn pending() -> Value {
    json!({"phase": "Pending"})
}

fn running() -> Value {
    json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z"})
}

/// What is done about the record, and about the Pod, in a word each.
fn words(plan: &Plan) -> (String, String) {
    let record = match &plan.record {
        OfRecord::Keep => "keep".to_owned(),
        OfRecord::Delete => "delete".to_owned(),
        OfRecord::Put(spec) => match &spec.deletion {
            None => "put".to_owned(),
            Some(deletion) => format!("end {:?}", deletion.grace_period_seconds),
        },
    };
    let pod = match &plan.pod {
        OfPod::Keep => "keep".to_owned(),
        OfPod::Delete => "delete".to_owned(),
        OfPod::Say(said) => {
            let word = said.state.reason.as_ref().or(said.state.phase.as_ref());
            word.cloned().unwrap_or_default()
        }
    };
    (record, pod)
}

fn are(plan: &Plan, record: &str, pod: &str) {
    assert_eq!(words(plan), (record.to_owned(), pod.to_owned()));
}

#[test]
fn a_pod_goes_out_sealed_once() {
    let pod = pod(&pending(), None);
    let spec = sent(&pod);
    assert_eq!(spec.name(), format!("1.west.east.{UID}"));
    assert_eq!((spec.namespace.as_str(), spec.pod.as_str()), ("shop-west", "web"));
    let content = open(&spec.sealed, &spec.about(), &key(2)).unwrap();
    let content: Value = serde_json::from_slice(&content).unwrap();
    assert_eq!(content["labels"], json!({"app": "web"}));
    assert_eq!(content["spec"].get("nodeName"), None);
    let settled = entry(pod, Some(record(&spec, &json!({}))));
    assert_eq!(planned(&settled, there()), Plan::NOTHING);
}

#[test]
fn a_pod_that_cannot_go_out_waits_and_says_why() {
    let waiting = entry(pod(&pending(), None), None);
    are(&planned(&waiting, Twin::NotThere("not yet".into())), "keep", "OffloadingBackOff");
    are(&planned(&waiting, Twin::Unwanted), "keep", "OffloadingBackOff");
    let mut refused = waiting.clone();
    let volumes = json!([{"name": "conf", "configMap": {"name": "conf"}}]);
    let had = refused.pod.as_mut().unwrap();
    let mut spec = had.spec.read().unwrap();
    spec["volumes"] = volumes;
    had.spec = serde_json::from_value(spec).unwrap();
    let plan = planned(&refused, there());
    are(&plan, "keep", "OffloadingRefused");
    let OfPod::Say(said) = plan.pod else { panic!() };
    assert!(said.state.message.unwrap().contains("spec.volumes[conf].configMap"));
    let [condition] = &said.state.conditions[..] else { panic!("{:?}", said.state.conditions) };
    assert_eq!((condition.type_.as_str(), condition.status.as_str()), (ACCEPTED, "False"));
    assert_eq!(condition.reason.as_deref(), Some("OffloadingRefused"));
    assert!(condition.message.as_ref().unwrap().contains("spec.volumes[conf].configMap"));

    let own = key(1);
    for (key, offered) in
        [(None, Some(own.public().to_string())), (Some(&own), None), (Some(&own), Some("odd".into()))]
    {
        let around = Around {
            us: "west",
            host: "east",
            twin: there(),
            key,
            public_key: offered.as_deref(),
            is_silent: false,
            services: &[],
            now: Timestamp::UNIX_EPOCH,
        };
        are(&plan_of(&waiting, &around), "keep", "OffloadingBackOff");
    }
}

fn plan_of(entry: &PodEntry, around: &Around<'_>) -> Plan {
    plan(entry, entry.pod.as_ref().unwrap(), around)
}

#[test]
fn the_status_comes_back_unless_the_host_is_silent() {
    let pod = pod(&pending(), None);
    let spec = sent(&pod);
    let said = entry(pod, Some(record(&spec, &json!({"pod": running()}))));
    are(&planned(&said, there()), "keep", "Running");
    are(&planned(&said, Twin::NotThere("the map vanished".into())), "keep", "Running");
    assert_eq!(planned_as(&said, there(), true), Plan::NOTHING);
}

#[test]
fn a_deletion_is_said_done_and_confirmed() {
    let spec = sent(&pod(&running(), None));
    let going = pod(&running(), Some(30));
    let asked = planned(&entry(going.clone(), Some(record(&spec, &json!({"pod": running()})))), there());
    are(&asked, "end Some(30)", "keep");
    let OfRecord::Put(asked) = asked.record else { panic!() };
    let waits = entry(going.clone(), Some(record(&asked, &json!({"pod": running()}))));
    assert_eq!(planned(&waits, there()), Plan::NOTHING);
    let shorter = entry(pod(&running(), Some(1)), waits.record.clone());
    are(&planned(&shorter, there()), "end Some(1)", "keep");
    let done = entry(going, Some(record(&asked, &json!({"deleted": true}))));
    are(&planned(&done, there()), "keep", "delete");
    let unknown = entry(pod(&pending(), Some(30)), None);
    are(&planned(&unknown, there()), "end Some(30)", "keep");
    are(&planned(&unknown, Twin::NotThere("not yet".into())), "keep", "delete");
}

#[test]
fn a_record_that_vanished_is_written_again_and_takes_no_pod_along() {
    let had = |pod| PodEntry { had_record: true, ..entry(pod, None) };
    are(&planned(&had(pod(&running(), None)), there()), "put", "keep");
    assert_eq!(planned(&had(pod(&running(), None)), Twin::NotThere("the map, too".into())), Plan::NOTHING);
    are(&planned(&had(pod(&pending(), Some(30))), there()), "end Some(30)", "keep");
    are(&planned(&entry(pod(&running(), Some(30)), None), there()), "end Some(30)", "keep");
    assert_eq!(
        planned(&had(pod(&running(), Some(30))), Twin::NotThere("the map, too".into())),
        Plan::NOTHING
    );
    let finished = json!({"phase": "Succeeded"});
    assert_eq!(planned(&had(pod(&finished, None)), there()), Plan::NOTHING, "it would run again");
}

#[test]
fn a_pod_whose_twin_is_gone_by_decision_fails_so_that_its_owner_makes_another() {
    let pod = pod(&running(), None);
    let spec = sent(&pod);
    let runs = entry(pod.clone(), Some(record(&spec, &json!({"pod": running()}))));
    are(&planned(&runs, Twin::Unwanted), "end None", "keep");
    let ended = ShadowPodSpec { deletion: Some(Deletion::default()), ..spec.clone() };
    let waits = entry(pod.clone(), Some(record(&ended, &json!({"pod": running()}))));
    assert_eq!(planned(&waits, Twin::Unwanted), Plan::NOTHING);
    assert_eq!(planned(&waits, there()), Plan::NOTHING, "what was once begun goes on");
    let done = entry(pod.clone(), Some(record(&ended, &json!({"deleted": true}))));
    are(&planned(&done, Twin::Unwanted), "delete", "OffloadingAborted");
    are(&planned(&entry(pod, None), Twin::Unwanted), "keep", "OffloadingAborted");
    let moved = ShadowPodSpec { namespace: "other".into(), ..spec };
    let moved = entry(runs.pod.clone().unwrap(), Some(record(&moved, &json!({}))));
    are(&planned(&moved, there()), "end None", "keep");
}

#[test]
fn a_pod_that_never_ran_goes_out_again_where_it_is_wanted() {
    let waiting = pod(&pending(), None);
    let ended = ShadowPodSpec { deletion: Some(Deletion::default()), ..sent(&waiting) };
    let done = entry(waiting.clone(), Some(record(&ended, &json!({"deleted": true}))));
    are(&planned(&done, there()), "delete", "keep");
    are(&planned(&done, Twin::Unwanted), "delete", "OffloadingAborted");
    are(&planned(&PodEntry { had_record: true, ..entry(waiting, None) }, there()), "put", "keep");
}

#[test]
fn what_somebody_changed_of_a_record_is_put_back() {
    let pod = pod(&running(), None);
    let spec = sent(&pod);
    let garbled: OwnShadowPod =
        serde_json::from_value(json!({"metadata": {"name": spec.name()}, "spec": {"origin": "west"}}))
            .unwrap();
    are(&planned(&entry(pod.clone(), Some(garbled)), there()), "put", "keep");
    let other = ShadowPodSpec { sealed: "other".into(), ..spec };
    are(&planned(&entry(pod, Some(record(&other, &json!({})))), there()), "put", "keep");
}

#[test]
fn what_has_finished_here_never_runs_there_again() {
    let done = pod(&json!({"phase": "Succeeded", "startTime": "2026-01-01T00:00:00Z"}), None);
    let spec = sent(&pod(&pending(), None));
    let with = |status: Value| entry(done.clone(), Some(record(&spec, &status)));
    let restored = with(json!({"pod": {"phase": "Running"}}));
    are(&planned(&restored, there()), "end None", "keep");
    assert_eq!(planned_as(&restored, there(), true), Plan::NOTHING, "the host was not heard since");
    let said = json!({"pod": {"phase": "Succeeded", "startTime": "2026-01-01T00:00:00Z"}});
    assert_eq!(planned(&with(said), there()), Plan::NOTHING);
}

#[test]
fn a_finished_pod_without_a_record_goes_when_it_is_deleted() {
    let failed = json!({"phase": "Failed", "startTime": "2026-01-01T00:00:00Z"});
    let going = entry(pod(&failed, Some(30)), None);
    are(&planned(&going, there()), "end Some(30)", "keep");
    are(&planned(&going, Twin::NotThere("silent".into())), "keep", "delete");
    are(&planned(&going, Twin::Unwanted), "keep", "delete");
    assert_eq!(planned(&entry(pod(&failed, None), None), there()), Plan::NOTHING);
}

#[test]
fn an_end_that_was_said_before_a_restore_is_not_believed_at_once() {
    let pod = pod(&running(), None);
    let spec = ShadowPodSpec { deletion: Some(Deletion::default()), ..sent(&pod) };
    let ended = entry(pod, Some(record(&spec, &json!({"deleted": true}))));
    assert_eq!(planned_as(&ended, there(), true), Plan::NOTHING);
    are(&planned(&ended, there()), "delete", "OffloadingAborted");
}
