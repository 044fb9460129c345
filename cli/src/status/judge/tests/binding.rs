//! Where API binding is set up.

use api::bind::resource::Resource;

use super::*;
use crate::{
    deletion::Deletion,
    objects::bind,
    status::found::{Asked, Binding, Consumer, Contract, Exported, Left, Offered, Provider},
};

fn api() -> Resource {
    Resource { group: "example.com".into(), resource: "mangodbs".into(), versions: vec!["v1".into()] }
}

fn binding() -> Binding {
    let ready = || vec![says("Ready", "True", "", "")];
    let contract = Contract {
        entry: Entry { namespace: "kube-bind-x".into(), ..entry("cluster", ready()) },
        last_heartbeat: Some(ago(60)),
        interval: SignedDuration::from_mins(5),
    };
    let used = Entry { namespace: String::new(), ..entry("mangodbs", ready()) };
    Binding {
        provider: Some(Provider {
            policy: Ok(bind::provider_policy().map(Some)),
            requests: Ok(bind::requests_policy().map(Some)),
            offers: vec![Offered { api: api(), policy: Ok(bind::objects_policy(&api(), false).map(Some)) }],
            contracts: Ok(vec![contract]),
            exports: Ok(vec![Exported {
                entry: entry("mangodbs", vec![says("ProviderInSync", "True", "", "")]),
                apis: vec![api().name()],
            }]),
            crds: Ok([api().name()].into()),
            marked: Ok([api().name()].into()),
            asked: vec![],
            refused: vec![],
            going: Ok(vec![]),
            left: Ok(vec![]),
        }),
        consumer: Some(Consumer { policy: Ok(bind::consumer_policy().map(Some)), bindings: Ok(vec![used]) }),
    }
}

fn judged(change: impl FnOnce(&mut Provider, &mut Consumer)) -> crate::status::report::Report {
    let mut binding = binding();
    change(binding.provider.as_mut().unwrap(), binding.consumer.as_mut().unwrap());
    report(&Found { binding: Some(binding), ..good() }, now())
}

#[test]
fn all_is_well_where_both_sides_are() {
    let well = judged(|_, _| {});
    assert!(well.is_well() && well.notes.is_empty(), "{:?} {:?}", well.problems, well.notes);
    assert!(text(&well).contains("contracts with consumers: 1\n"), "{}", text(&well));
    assert!(text(&well).contains("APIServiceBindings: 1\n"), "{}", text(&well));
}

#[test]
fn what_an_api_server_refuses_for_binding_is_a_problem_on_both_sides() {
    let refused = || says("WritesAccepted", "False", "Refused", "the provider refuses to create: \"quota\"");
    let judged = judged(|provider, consumer| {
        let place = vec![says("Assigned", "False", "Refused", "quota")];
        let place = Entry { namespace: "kube-bind-x".into(), ..entry("shop", place) };
        provider.refused = vec![("APIServiceNamespace", Ok(vec![place]))];
        let ready = says("Ready", "True", "", "");
        consumer.bindings = Ok(vec![entry("mangodbs", vec![ready, refused()])]);
    });
    let [provider, consumer] = &judged.problems[..] else { panic!("{:?}", judged.problems) };
    assert_eq!(provider.place, "APIServiceNamespace kube-bind-x/shop");
    assert!(provider.what.contains("quota") && consumer.what.contains("refuses to create"));
}

#[test]
fn a_cluster_without_a_set_may_bind() {
    let found = Found {
        binding: Some(binding()),
        areas: Ok(vec![]),
        sets: Ok(vec![]),
        noted: Ok(None),
        records_policy: None,
        imports_policy: None,
        own_policy: None,
        checks: vec![],
        exports: None,
        imports: None,
        leader: None,
        member: None,
        life: None,
        ..good()
    };
    assert!(report(&found, now()).is_well());
}

#[test]
fn a_consumer_that_is_not_heard_any_more_is_a_problem_and_one_that_never_was_is_none() {
    let silent =
        judged(|provider, _| provider.contracts.as_mut().unwrap()[0].last_heartbeat = Some(ago(601)));
    assert_eq!(silent.problems[0].place, "ClusterBinding kube-bind-x/cluster");
    assert!(silent.problems[0].what.contains("no heartbeat for 601 seconds"), "{:?}", silent.problems);
    let new = judged(|provider, _| {
        let contract = &mut provider.contracts.as_mut().unwrap()[0];
        (contract.last_heartbeat, contract.entry.conditions) = (None, vec![]);
    });
    assert!(new.is_well(), "{:?}", new.problems);
}

#[test]
fn what_is_not_ready_or_not_in_step_is_said_with_the_words_of_the_daemon() {
    let late = judged(|_, consumer| {
        consumer.bindings.as_mut().unwrap()[0].conditions.push(says(
            "Synced",
            "False",
            "Refused",
            "1 not in step: a/b",
        ));
    });
    assert_eq!(late.problems[0].place, "APIServiceBinding mangodbs");
    assert_eq!(late.problems[0].what, "Synced is False: Refused: 1 not in step: a/b");
    let new = judged(|_, consumer| consumer.bindings.as_mut().unwrap()[0].conditions.clear());
    assert!(new.problems[0].what.contains("has not processed it yet"), "{:?}", new.problems);
}

#[test]
fn policies_that_are_not_in_force_are_problems() {
    for (change, means) in [
        (
            (|provider, _| provider.policy = Ok([None, None])) as fn(&mut Provider, &mut Consumer),
            "give rights",
        ),
        (|provider, _| provider.requests = Ok([None, None]), "keep its cluster namespace"),
        (|_, consumer| consumer.policy = Ok([None, None]), "every CRD"),
        (|provider, _| provider.offers[0].policy = Ok([None, None]), "can write objects of others"),
    ] {
        let open = judged(change);
        assert_eq!(open.problems.len(), 1, "{:?}", open.problems);
        assert!(open.problems[0].what.contains(means), "{:?}", open.problems);
    }
}

#[test]
fn what_a_template_has_and_nobody_can_have_is_said() {
    let lost = judged(|provider, _| provider.marked = Ok([].into()));
    assert_eq!(lost.problems.len(), 1, "{:?}", lost.problems);
    assert_eq!(lost.problems[0].place, "CustomResourceDefinition mangodbs.example.com");
    assert!(lost.problems[0].what.contains("kube-bind.io/exported=true"), "{:?}", lost.problems);
}

fn deleted(seconds_ago: i64, finalizer: &str) -> Option<Deletion> {
    let at = ago(seconds_ago).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let metadata = json!({"deletionTimestamp": at, "finalizers": [finalizer]});
    Deletion::of(&serde_json::from_value(metadata).unwrap())
}

#[test]
fn what_hangs_in_its_deletion_is_said_with_what_holds_it_though_it_was_ready() {
    let stuck = judged(|_, consumer| {
        let binding = &mut consumer.bindings.as_mut().unwrap()[0];
        binding.deletion = deleted(300, "multicluster.freeport.dev/bind");
    });
    let problem = &stuck.problems[0];
    assert_eq!((stuck.problems.len(), &problem.place[..]), (1, "APIServiceBinding mangodbs"));
    let begins = "is being deleted for 5m, held by finalizer multicluster.freeport.dev/bind (freeport-member";
    assert!(problem.what.starts_with(begins), "{problem:?}");
    assert!(text(&stuck).contains("APIServiceBindings: 1, of which 1 "), "{}", text(&stuck));
}

#[test]
fn what_hangs_at_a_provider_is_said_of_each_kind() {
    let stuck = judged(|provider, _| {
        let going = |name: &str| Entry { deletion: deleted(60, "example.com/hold"), ..entry(name, vec![]) };
        provider.exports.as_mut().unwrap()[0].entry = going("mangodbs");
        provider.going = Ok(vec![going("kube-bind-x")]);
    });
    assert_eq!(stuck.problems.len(), 2, "{:?}", stuck.problems);
    assert_eq!(stuck.problems[0].place, "APIServiceExport shop/mangodbs");
    assert!(stuck.problems[1].what.contains("example.com/hold (not Freeport's"), "{:?}", stuck.problems);
}

#[test]
fn an_export_that_lacks_its_schema_or_its_crd_is_a_problem() {
    let missing = judged(|provider, _| {
        provider.exports.as_mut().unwrap()[0].entry.conditions =
            vec![says("ProviderInSync", "False", "BoundSchemaMissing", "there is no BoundSchema x")];
        provider.crds = Ok([].into());
    });
    assert_eq!(missing.problems.len(), 2, "{:?}", missing.problems);
    let said = "ProviderInSync is False: BoundSchemaMissing: there is no BoundSchema x";
    assert_eq!(missing.problems[0].what, said);
    assert_eq!(missing.problems[1].place, "CustomResourceDefinition mangodbs.example.com");
    assert!(
        missing.problems[1].what.contains("APIServiceExport shop/mangodbs has it"),
        "{:?}",
        missing.problems
    );
    let unread = judged(|provider, _| provider.exports.as_mut().unwrap()[0].entry.conditions.clear());
    assert!(unread.is_well(), "the leader may not have looked at it yet");
}

#[test]
fn a_question_that_nobody_answers_tells_of_a_leader_that_is_dead() {
    let asked = |seconds| {
        judged(|provider, _| {
            let unanswered = Ok(vec![(entry("mango", vec![]), ago(seconds))]);
            provider.asked = vec![Asked { kind: "APIServiceExportRequest", unanswered }];
        })
    };
    assert!(asked(50).is_well());
    let late = asked(300);
    assert_eq!(late.problems[0].place, "APIServiceExportRequest shop/mango");
    assert!(late.problems[0].next.contains("--bind"), "{:?}", late.problems);
}

#[test]
fn a_leader_that_only_provides_is_seen_by_its_deployment() {
    let dead: Deployment =
        serde_json::from_value(json!({"metadata": {}, "spec": {"replicas": 1, "selector": {},
        "template": {}}, "status": {"availableReplicas": 0}}))
        .unwrap();
    let found = Found {
        binding: Some(binding()),
        areas: Ok(vec![]),
        records_policy: None,
        leader: Some(Ok(Some(dead))),
        ..good()
    };
    let said = report(&found, now());
    assert!(said.problems.iter().any(|p| p.place.contains("freeport-leader")), "{:?}", said.problems);
}

#[test]
fn a_namespace_that_was_made_for_a_consumer_and_goes_with_nothing_is_a_problem() {
    let left = |made| Left { name: "cns-team".into(), made_for: "cns/team".into(), made: ago(made) };
    let old = judged(|provider, _| provider.left = Ok(vec![left(61), left(5)]));
    assert_eq!(old.problems.len(), 1, "what is young may not be counted yet: {:?}", old.problems);
    assert_eq!(old.problems[0].place, "Namespace cns-team");
    assert!(old.problems[0].what.contains("cns/team, which does not exist"), "{:?}", old.problems);
    let mut going = kube::core::ObjectMeta {
        name: Some("cns-team".into()),
        annotations: Some(
            [(api::bind::label::API_SERVICE_NAMESPACE.to_owned(), "cns/team".to_owned())].into(),
        ),
        creation_timestamp: Some(Time(ago(61))),
        ..Default::default()
    };
    assert!(Left::of(&going).is_some());
    going.deletion_timestamp = Some(Time(ago(1)));
    assert!(Left::of(&going).is_none());
}
