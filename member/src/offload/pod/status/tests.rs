//! What a Pod says of itself, after what its host says.

use api::offload::pod_status::ACCEPTED as ACCEPTED_HERE;

use super::*;

fn pod(status: &Value) -> BoundPod {
    let spec = json!({"containers": [{"name": "web"}], "initContainers": [{"name": "init"}]});
    serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec, "status": status})).unwrap()
}

fn mirror(status: &Value, said: Value) -> Option<Said> {
    let services = ["10.96.0.0/12".parse().unwrap()];
    let said = serde_json::from_value(said).unwrap();
    mirrored(&pod(status), &PodState::of(status), &said, "east", &services, at(5))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn container(name: &str) -> Value {
    json!({"name": name, "image": "i", "imageID": "x", "ready": true, "restartCount": 0})
}

fn condition(type_: &str, status: &str) -> Value {
    json!({"type": type_, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[test]
fn a_pod_here_is_as_the_host_says_and_a_second_look_writes_nothing() {
    let scheduled =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "observedGeneration": 1});
    let had = json!({"phase": "Pending", "reason": BACK_OFF, "qosClass": "BestEffort",
        "conditions": [scheduled, condition("Ready", "False"), condition("PodResizePending", "True")]});
    let said = json!({"pod": {
        "phase": "Running", "startTime": "2026-01-01T00:00:00Z",
        "conditions": [condition("PodScheduled", "False"), condition("Ready", "True"), condition("Initialized", "True")],
        "containerStatuses": [container("web"), container("miner")], "initContainerStatuses": [container("init")],
        "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}],
    }});
    let want = mirror(&had, said.clone()).unwrap();
    assert_eq!(want.warning, None);
    let patch = patch(&had, &PodState::of(&had), &want.state);
    let conditions = json!([scheduled, condition("Ready", "True"), condition("Initialized", "True")]);
    assert_eq!(
        patch,
        json!({
            "phase": "Running", "reason": null, "startTime": "2026-01-01T00:00:00Z", "conditions": conditions,
            "containerStatuses": [container("web")], "initContainerStatuses": [container("init")],
            "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}], "podIP": "10.1.0.7",
        })
    );
    let mut now = had.clone();
    for (field, value) in patch.as_object().unwrap() {
        now[field] = value.clone();
    }
    assert_eq!(mirror(&now, said), None);
    assert_eq!(mirror(&now, json!({})), None, "nothing is said");
}

#[test]
fn what_the_host_refuses_is_said_once() {
    let refused = json!({"type": "Accepted", "status": "False", "reason": "NotAccepted", "message": "ask them",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let had = json!({"phase": "Pending", "conditions": [condition("Other", "True")]});
    let want = mirror(&had, json!({"conditions": [refused]})).unwrap();
    let said = (want.state.phase.as_deref(), want.state.reason.as_deref(), want.state.message.as_deref());
    assert_eq!(said, (Some("Pending"), Some("NotAccepted"), Some("ask them")));
    assert_eq!(want.warning.unwrap().reason, HOST_REFUSED);
    let now = json!(want.state);
    assert_eq!(mirror(&now, json!({"conditions": [refused]})), None);
    let says = json!({"type": "multicluster.freeport.dev/Accepted", "status": "False", "reason": "NotAccepted",
        "message": "ask them", "lastTransitionTime": "1970-01-01T00:00:05Z"});
    assert_eq!(now["conditions"], json!([condition("Other", "True"), says]));
    let taken = mirror(&now, json!({"pod": {"phase": "Pending"}})).unwrap().state;
    assert_eq!(json!(taken.conditions), json!([condition("Other", "True")]), "it runs there");
    assert_eq!(taken.reason, None);

    let running = json!({"phase": "Running", "conditions": [condition("Ready", "True")]});
    let want = mirror(&running, json!({"pod": running, "conditions": [refused]})).unwrap();
    assert_eq!(want.state.conditions[0].status, "False");
    assert_eq!(want.state.phase.as_deref(), Some("Running"));
}

/// A container that runs, and one that has not begun.
fn running() -> Value {
    let (mut web, mut init) = (container("web"), container("init"));
    web["state"] = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    web["started"] = json!(true);
    init["state"] = json!({"waiting": {"reason": "PodInitializing"}});
    json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [web], "initContainerStatuses": [init]})
}

#[test]
fn of_a_pod_that_has_ended_no_container_runs() {
    let left = json!({"pod": {"phase": "Failed", "reason": ABORTED, "containerStatuses": running()["containerStatuses"]}});
    for said in [aborted(&PodState::of(&running()), "east"), mirror(&running(), left.clone())] {
        let state = said.unwrap().state;
        let web = json!(state.container_statuses[0]);
        assert_eq!((&web["ready"], &web["started"]), (&json!(false), &json!(false)));
        let ended = &web["state"]["terminated"];
        assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(137), &json!(ABORTED)));
        assert_eq!(ended["startedAt"], "2026-01-01T00:00:00Z");
    }
    let state = aborted(&PodState::of(&running()), "east").unwrap().state;
    assert_eq!(
        json!(state.init_container_statuses[0].state),
        json!({"waiting": {"reason": "PodInitializing"}})
    );
    assert_eq!(aborted(&state, "east"), None);
    let ended = json!(mirror(&running(), left.clone()).unwrap().state);
    assert_eq!(mirror(&ended, left), None);
}

#[test]
fn containers_of_a_pod_that_its_host_does_not_make_again_wait() {
    let refused = json!({"type": "Accepted", "status": "False", "reason": "ResourcesExceeded", "message": "too much",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let said = json!({"conditions": [refused]});
    let now = json!(mirror(&running(), said.clone()).unwrap().state);
    let web = &now["containerStatuses"][0];
    assert_eq!(web["state"], json!({"waiting": {"reason": "ResourcesExceeded"}}));
    assert_eq!(web["lastState"]["terminated"]["exitCode"], 137);
    assert_eq!(mirror(&now, said), None);
    let again = mirror(&now, json!({"pod": running()})).unwrap().state;
    assert_eq!(json!(again.container_statuses[0])["state"], running()["containerStatuses"][0]["state"]);
}

#[test]
fn an_address_that_cannot_be_is_left_out_and_said_once() {
    let said = json!({"pod": {"phase": "Running", "podIPs": [{"ip": "10.96.0.1"}, {"ip": "fd00::7"}]}});
    let want = mirror(&json!({"phase": "Pending"}), said.clone()).unwrap();
    assert_eq!(json!(want.state.pod_ips), json!([{"ip": "fd00::7"}]));
    let warning = want.warning.unwrap();
    assert!(warning.reason == ADDRESS_REFUSED && warning.message.contains("10.96.0.1"), "{warning:?}");
    assert_eq!(mirror(&json!(want.state), said), None);
}

#[test]
fn a_pod_that_has_finished_stays_finished() {
    let failed = json!({"phase": "Failed", "reason": ABORTED});
    assert_eq!(mirror(&failed, json!({"pod": {"phase": "Running"}})), None);
    let later = json!({"pod": {"phase": "Failed", "reason": "Error"}});
    assert_eq!(mirror(&failed, later).unwrap().state.reason.as_deref(), Some("Error"));
}

#[test]
fn what_waits_or_is_aborted_says_so_once() {
    let running = json!({"phase": "Running", "conditions": [condition("Ready", "True")], "startTime": "x"});
    let have = PodState::of(&running);
    assert!(has_started(&have) && !has_started(&PodState::of(&json!({"phase": "Pending"}))));
    let said = aborted(&have, "east").unwrap();
    assert_eq!(
        (said.state.phase.as_deref(), said.state.conditions[0].status.as_str()),
        (Some("Failed"), "False")
    );
    assert_eq!(said.warning.unwrap().reason, ABORTED);
    assert_eq!(aborted(&said.state, "east"), None);
    let waiting = waits(&PodState::default(), "because".into()).unwrap();
    let other = waits(&waiting.state, "for another reason".into()).unwrap();
    assert_eq!(other.warning, None, "not told again");
}

#[test]
fn a_container_that_waited_for_a_twin_has_ended_when_its_pod_is_aborted() {
    let runs =
        json!({"name": "web", "ready": true, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
    let new = json!({"name": "new", "state": {"waiting": {"reason": "ContainerCreating"}}});
    let mut have = PodState::of(&json!({"phase": "Running", "containerStatuses": [runs, new]}));
    containers::wait(&mut have, "NoTwin");
    assert!(have.container_statuses[0].ended().is_none(), "it may run again");
    let said = aborted(&have, "east").unwrap().state;
    let [web, new] = &said.container_statuses[..] else { panic!("{said:?}") };
    let ended = web.state.clone().unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (137, Some(ABORTED)));
    assert_eq!((&web.last_state, new.ended()), (&None, None), "the other one never ran");
}

#[test]
fn a_pod_that_is_refused_has_a_condition_until_it_is_not() {
    let refused_at = |have: &PodState, why: &str, second| refused(have, why.into(), at(second));
    let said = refused_at(&PodState::default(), "spec.volumes[conf].configMap", 7).unwrap();
    let [condition] = &said.state.conditions[..] else { panic!("{said:?}") };
    assert_eq!((condition.type_.as_str(), condition.status.as_str()), (ACCEPTED_HERE, "False"));
    assert_eq!(condition.message.as_deref(), Some("spec.volumes[conf].configMap"));
    assert_eq!(refused_at(&said.state, "spec.volumes[conf].configMap", 9), None, "it is said");
    let other = refused_at(&said.state, "spec.hostUsers", 9).unwrap().state;
    let [later] = &other.conditions[..] else { panic!("{other:?}") };
    assert_eq!(later.message.as_deref(), Some("spec.hostUsers"));
    assert_eq!(later.last_transition_time, condition.last_transition_time, "it was refused before");
    assert_eq!(waits(&other, "no twin".into()).unwrap().state.conditions, []);
    assert_eq!(aborted(&other, "east").unwrap().state.conditions, []);
}

#[test]
fn a_container_that_may_not_run_again_stays_ended() {
    let state = |name: &str, state: Value| {
        let mut container = container(name);
        container["state"] = state;
        container
    };
    let ended = |code: i32| json!({"terminated": {"exitCode": code}});
    let runs = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    for (policy, code, stays) in [
        ("Never", 0, true),
        ("Never", 1, true),
        ("OnFailure", 0, true),
        ("OnFailure", 1, false),
        ("Always", 0, false),
    ] {
        let had = json!({"phase": "Running", "containerStatuses": [state("web", ended(code))]});
        let said = json!({"pod": {"phase": "Running", "podIPs": [{"ip": "10.1.0.8"}],
            "containerStatuses": [state("web", runs.clone())]}});
        let mut pod = pod(&had);
        let mut spec = pod.spec.read().unwrap();
        spec["restartPolicy"] = json!(policy);
        pod.spec = serde_json::from_value(spec).unwrap();
        let said = serde_json::from_value(said).unwrap();
        let said = mirrored(&pod, &PodState::of(&had), &said, "east", &[], at(5)).unwrap();
        assert_eq!(said.state.container_statuses[0].ended(), stays.then_some(code), "{policy} {code}");
        assert_eq!(json!(said.state.pod_ips), json!([{"ip": "10.1.0.8"}]), "the rest goes on");
    }
}

#[test]
fn a_pod_that_no_node_of_the_host_takes_says_so() {
    let scheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "too little cpu"});
    let had = json!({"phase": "Pending", "conditions": [condition("PodScheduled", "True")]});
    let said = json!({"pod": {"phase": "Pending", "conditions": [scheduled]}});
    let state = mirror(&had, said).unwrap().state;
    assert_eq!(state.reason.as_deref(), Some("Unschedulable"));
    assert_eq!(state.message.as_deref(), Some("in cluster east: too little cpu"));
    assert_eq!(json!(state.conditions), json!([condition("PodScheduled", "True")]), "here it has a Node");
}

#[test]
fn a_pod_is_ready_when_its_gates_are_open_here() {
    let gate = |status: &str| condition("example.com/behind-balancer", status);
    let said = json!({"pod": {"phase": "Running", "conditions": [condition("ContainersReady", "True"), condition("Ready", "True")]}});
    let said: ShadowPodStatus = serde_json::from_value(said).unwrap();
    let mut pod = pod(&json!({}));
    let gates = json!([{"conditionType": "example.com/behind-balancer"}]);
    pod.spec = serde_json::from_value(json!({"containers": [], "readinessGates": gates})).unwrap();
    let mirrored = |have: &Value, second| {
        mirrored(&pod, &PodState::of(have), &said, "east", &[], at(second)).map(|said| json!(said.state))
    };
    let ready = |status: &Value, type_: &str| {
        let conditions = status["conditions"].as_array().unwrap();
        let of_type = conditions.iter().find(|condition| condition["type"] == type_).unwrap();
        (of_type["status"].as_str().unwrap().to_owned(), of_type["lastTransitionTime"].clone())
    };
    let mut now = mirrored(&json!({"phase": "Running"}), 5).unwrap();
    assert_eq!(ready(&now, "Ready"), ("False".into(), json!("1970-01-01T00:00:05Z")), "nobody has said so");
    assert_eq!(ready(&now, "ContainersReady").0, "True");
    assert_eq!(mirrored(&now, 6), None, "a second look writes nothing");
    now["conditions"].as_array_mut().unwrap().push(gate("False"));
    assert_eq!(mirrored(&now, 7), None);
    *now["conditions"].as_array_mut().unwrap().last_mut().unwrap() = gate("True");
    let now = mirrored(&now, 8).unwrap();
    assert_eq!(ready(&now, "Ready"), ("True".into(), json!("1970-01-01T00:00:08Z")));
    assert_eq!(mirrored(&now, 9), None);
}
