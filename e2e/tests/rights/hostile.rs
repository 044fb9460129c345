//! A stolen credential tries every verb on every resource that the API server serves (issue 14, B). What passes is what the tables
//! in docs/rights.md say, neither more nor less, and never touches what is another's.

mod ask;
mod docs;
mod targets;

use std::collections::BTreeSet;

use cli::objects::access;
use e2e::{
    account::by_token,
    fixture::{AREA, SET, SYSTEM},
    waiting::eventually,
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

use self::{
    ask::{Asked, Place},
    docs::table,
    targets::{ENABLED, TWIN, Target},
};
use crate::rights::{
    account::{self, Rights},
    attempt::{Do, EVERYWHERE, Refusal, within},
    parties::{OTHER_AREA, Parties, alone, shared},
    records, samples,
};

/// Something that passes: where, the resource, the verb, and whose objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    place: String,
    resource: String,
    verb: String,
    whose: String,
}

const ALL: &str = "all";
const OWN: &str = "its own";

/// Whose objects a verb that writes reaches. Tried on one of our own, on all that others have there, and on what pretends.
async fn whose(parties: &Parties, us: &Client, target: &Target, verb: &str) -> String {
    let (mut passed, mut refused) = (Vec::new(), Vec::new());
    let mut note = |what: String, done: Result<(), Refusal>| match done {
        Ok(()) => passed.push(what),
        Err(refusal) if refusal.is_deliberate() => refused.push(what),
        // Another test has deleted it meanwhile.
        Err(Refusal { code: 404, .. }) => {}
        Err(refusal) => panic!("{verb} {what}: {refusal:?}"),
    };
    let own = target.own.as_ref().map(|own| own["metadata"]["name"].as_str().unwrap().to_owned());
    if verb == "create" {
        for object in &target.squats {
            let done = creation(target, object).by(us, &target.namespace, &target.kind).await;
            note(object.to_string(), done);
        }
    } else {
        for namespace in target.others_in.iter().chain([&target.namespace]) {
            for name in names(&parties.world.leader().client, namespace, target).await {
                let is_own = Some(&name) == own.as_ref() || target.also_own == Some(name.as_str());
                if !is_own || *namespace != target.namespace {
                    let done = request(verb, &name, target).by(us, namespace, &target.kind).await;
                    // What goes already is let go again, whoever asks.
                    if done.is_err() || stays(&parties.world.leader().client, namespace, &name, target).await
                    {
                        note(format!("{namespace}/{name}"), done);
                    }
                }
            }
        }
    }
    if let Some(own) = own {
        let mine = match verb {
            "create" => creation(target, target.another.as_ref().or(target.own.as_ref()).unwrap()),
            verb => request(verb, &own, target),
        };
        match mine.by(us, &target.namespace, &target.kind).await {
            // It is there already, and was created just so.
            Err(Refusal { code: 409, .. }) | Ok(()) => {}
            Err(refusal) => panic!("{verb} {own}, which is its own: {refusal:?}"),
        }
    }
    match (passed.as_slice(), refused.as_slice()) {
        ([], _) => OWN.to_owned(),
        (_, []) => ALL.to_owned(),
        _ => panic!("{verb} {}: passed {passed:?}, refused {refused:?}", target.resource),
    }
}

/// The creation of this object, or of what is asked for of the one of its name, of which nothing stays.
fn creation(target: &Target, object: &Value) -> Do {
    match target.resource.split_once('/') {
        Some((_, subresource)) => Do::Ask {
            name: object["metadata"]["name"].as_str().unwrap().to_owned(),
            subresource: subresource.to_owned(),
        },
        None if target.is_given => Do::DryApply(object.clone()),
        None => Do::DryCreate(object.clone()),
    }
}

/// The request of a verb, of which nothing stays.
fn request(verb: &str, name: &str, target: &Target) -> Do {
    let subresource = target.resource.split_once('/').map(|(_, sub)| sub.to_owned());
    let change = match &subresource {
        Some(_) => json!({"status": {"conditions": []}}),
        None => json!({"metadata": {"annotations": {"seen": "here"}}}),
    };
    match verb {
        "patch" | "update" => Do::DryPatch { name: name.to_owned(), subresource, change },
        "delete" | "deletecollection" => Do::DryDelete(name.to_owned()),
        verb => panic!("no request for {verb} {}", target.resource),
    }
}

/// Whether the object is there, and not on its way out.
async fn stays(admin: &Client, namespace: &str, name: &str, target: &Target) -> bool {
    let there = within(admin, namespace, &target.kind).get_opt(name).await.unwrap();
    there.is_some_and(|object| object.metadata.deletion_timestamp.is_none())
}

async fn names(admin: &Client, namespace: &str, target: &Target) -> Vec<String> {
    let found = within(admin, namespace, &target.kind).list(&ListParams::default()).await.unwrap();
    found.items.into_iter().filter_map(|object| object.metadata.name).collect()
}

/// What passes for `us`, beyond what every account may: as the API server says, and as requests show where they write.
async fn passing(parties: &Parties, us: &Client, asked: &Asked<'_>, targets: &[Target]) -> BTreeSet<Right> {
    let nobody = account::with(&parties.world, "default", asked.nobody, Rights::Role(json!([]))).await;
    let mut rights = BTreeSet::new();
    for found in ask::allowed(us, &nobody, asked).await {
        let reads = ["get", "list", "watch"].contains(&found.verb.as_str());
        let writes =
            ["create", "update", "patch", "delete", "deletecollection"].contains(&found.verb.as_str());
        let whose = match (&found.names, writes) {
            (Some(names), false) => names.clone(),
            (None, false) => ALL.to_owned(),
            (_, true) => {
                let places = asked.places.iter().filter(|place| place.name == found.place);
                let there: Vec<_> = places.map(|place| place.namespace).collect();
                let of = targets.iter().filter(|target| target.resource == found.resource);
                let target = of.min_by_key(|target| !there.contains(&target.namespace.as_str()));
                let target = target.unwrap_or_else(|| panic!("no target for {found:?}: give it one"));
                whose(parties, us, target, &found.verb).await
            }
        };
        assert!(reads || writes || whose != ALL, "{found:?}");
        rights.insert(Right { place: found.place, resource: found.resource, verb: found.verb, whose });
    }
    rights
}

fn compare(heading: &str, passing: &BTreeSet<Right>) {
    let told = table(heading);
    let more: Vec<_> = passing.difference(&told).collect();
    let less: Vec<_> = told.difference(passing).collect();
    assert!(more.is_empty(), "passes, and docs/rights.md does not say it under {heading:?}:\n{more:#?}");
    assert!(less.is_empty(), "docs/rights.md says it under {heading:?}, and it does not pass:\n{less:#?}");
}

/// Creates what the target has of its own.
async fn create_own(us: &Client, targets: &[Target]) {
    for target in targets.iter().filter(|target| !target.resource.contains('/') && !target.is_given) {
        if let Some(own) = &target.own {
            let create = Do::Create(own.clone());
            // A right that it has given itself, and what Kubernetes makes in a new Namespace, are there a moment later.
            eventually(&format!("{} of its own is created", target.resource), || async {
                let done = create.by(us, &target.namespace, &target.kind).await;
                done.map_err(|refusal| format!("{refusal:?}"))
            })
            .await;
        }
    }
}

/// What its records may say has a size.
async fn are_too_large(eve: &Client) {
    let slice = |field: &str, value: Value| {
        let mut record = records::slice("eve", "shop", "large");
        record["spec"]["endpointSlice"][field] = value;
        record
    };
    let service = |field: &str, value: Value| {
        let mut record = records::service("eve", "shop", "large");
        record["spec"]["service"][field] = value;
        record
    };
    let port = |number: u16| json!({"name": format!("p{number}"), "port": number, "protocol": "TCP"});
    let ports: Vec<_> = (1..=251).map(port).collect();
    let large = [
        ("endpoints", slice("endpoints", json!(vec![json!({"addresses": ["10.0.0.1"]}); 1001]))),
        ("a zone", slice("endpoints", json!([{"addresses": ["10.0.0.1"], "zone": "z".repeat(1025)}]))),
        ("ports", service("serviceSpec", json!({ "ports": ports }))),
        ("all of it", service("exportedAnnotations", json!({"note": "x".repeat(4 << 20)}))),
    ];
    for (what, record) in large {
        let refused = Do::Create(record).by(eve, AREA, &records::exports()).await.unwrap_err();
        assert!(matches!(refused.code, 413 | 422), "{what}: {refused:?}");
    }
}

async fn delete_own(admin: &Client, targets: &[Target]) {
    for target in targets.iter().filter(|target| !target.resource.contains('/')) {
        let Some(Value::String(name)) = target.own.as_ref().map(|own| own["metadata"]["name"].clone()) else {
            continue;
        };
        let done = Do::Delete(name).by(admin, &target.namespace, &target.kind).await;
        // With a Service Kubernetes deletes the Endpoints of its name.
        assert!(matches!(done, Ok(()) | Err(Refusal { code: 404, .. })), "{}: {done:?}", target.resource);
    }
}

#[e2e::test]
fn a_stolen_token_does_at_the_leader_what_the_docs_say_and_no_more() {
    shared(async |parties| {
        let admin = &parties.world.leader().client;
        for object in access::objects(SET, "eve", None) {
            let body: DynamicObject = serde_json::from_value(object.body.clone()).unwrap();
            let api = Api::<DynamicObject>::namespaced_with(admin.clone(), AREA, &object.resource);
            api.create(&PostParams::default(), &body).await.unwrap();
        }
        let eve = by_token(&parties.world, "leader", AREA, &access::account("eve")).await;
        let targets = targets::at_the_leader("eve");
        let place = |name, namespace| Place { name, namespace };
        let asked = Asked {
            nobody: "nobody-leader",
            places: &[
                place("its Common Area", AREA),
                place("another Common Area", OTHER_AREA),
                place("freeport-system", SYSTEM),
                place("default", "default"),
            ],
            own_names: &["eve", "freeport-member-eve", "member-announce-from-eve"],
        };
        account::until_allowed(&eve, AREA, "multicluster.crd.antrea.io", "resourceexports", "create").await;
        create_own(&eve, &targets).await;
        let guests = [
            (records::map("away", "eve"), records::maps()),
            (records::shadow("away", "eve"), records::shadows()),
        ];
        for (guest, kind) in &guests {
            Do::Create(guest.clone()).by(admin, AREA, kind).await.unwrap();
        }
        compare("At the leader", &passing(parties, &eve, &asked, &targets).await);
        are_too_large(&eve).await;
        delete_own(admin, &targets).await;
        for (guest, kind) in &guests {
            let name = guest["metadata"]["name"].as_str().unwrap().to_owned();
            Do::Delete(name).by(admin, AREA, kind).await.unwrap();
        }
    });
}

#[e2e::test]
fn a10_a_stolen_member_pod_does_in_its_cluster_what_the_docs_say_and_no_more() {
    // What other tests have the member make meanwhile would be its own, too.
    alone(async |parties| {
        let admin = &parties.world.leader().client;
        let space = parties.world.namespace("rights-hostile", &["leader"]).await;
        let targets = targets::in_its_own_cluster(parties, &space).await;
        let place = |name, namespace| Place { name, namespace };
        let asked = Asked {
            nobody: "nobody-member",
            places: &[
                place("freeport-system", SYSTEM),
                place("the Common Area", AREA),
                place("default", "default"),
                place("kube-system", "kube-system"),
                place("kube-node-lease", "kube-node-lease"),
                place("a twin", TWIN),
            ],
            own_names: &[
                "freeport-leader-demo",
                "freeport-member",
                "freeport-member-active",
                "freeport-membership",
                "freeport-webhook",
                "freeport-webhook-tls",
                "freeport-offload-key",
                "freeport-offload",
            ],
        };
        create_own(&parties.member, &targets).await;
        compare("In its own cluster", &passing(parties, &parties.member, &asked, &targets).await);
        delete_own(admin, &targets).await;
        for (kind, name) in [
            (samples::nodes(), "freeport-hostile-theirs"),
            (samples::peers(), "hostile"),
            (samples::namespaces(), ENABLED),
        ] {
            Do::Delete(name.to_owned()).by(admin, EVERYWHERE, &kind).await.unwrap();
        }
        parties.world.release(&space).await;
    });
}
