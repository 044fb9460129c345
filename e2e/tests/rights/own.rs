//! What a member may write into the Common Area: its own, as it has to look.

use api::{
    ServiceName,
    name::{self, announce, member_lease},
    resource_export::ResourceExport,
};
use e2e::{fixture::AREA, waiting::eventually};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::rights::{
    account::{self, Rights, any_right},
    attempt::{Attempt, Do, Refusal, try_all},
    parties::shared,
    records::{announces, exports, leases, record, reports, service, slice},
};

/// Records under one's own ID that are not what they seem.
fn disguised() -> Vec<Attempt> {
    let attempt = |what, todo, says| Attempt { what, kind: exports(), todo, says };
    let changed = |what, says, change: fn(&mut Value)| {
        let mut record = service("east", "rights", "disguised");
        change(&mut record);
        attempt(what, Do::Create(record), says)
    };
    vec![
        changed("the name of south's record", "must be named east-rights-disguised-service", |r| {
            r["metadata"]["name"] = json!("south-rights-disguised-service");
        }),
        changed("a name of no record", "must be named", |r| r["metadata"]["name"] = json!("free")),
        changed("labels of south", "must have the labels sourceClusterID=east", |r| {
            r["metadata"]["labels"]["sourceClusterID"] = json!("south");
        }),
        changed("labels of another Service", "must have the labels", |r| {
            r["metadata"]["labels"]["sourceName"] = json!("web");
        }),
        changed("no labels", "must have the labels", |r| r["metadata"]["labels"] = json!({})),
        changed("labels of south on a record of another kind", "must have the labels", |r| {
            r["metadata"]["name"] = json!("east-clusterinfo");
            r["spec"]["kind"] = json!("ClusterInfo");
            r["metadata"]["labels"] = json!({"sourceClusterID": "south"});
        }),
        changed("a network policy for all", "is not taken: kinds are", |r| {
            r["spec"]["kind"] = json!("AntreaClusterNetworkPolicy");
        }),
        changed("no kind", "is not taken: kinds are", |r| {
            drop(r["spec"].as_object_mut().unwrap().remove("kind"))
        }),
        changed("the payload of a network policy", "must not have clusterNetworkPolicy", |r| {
            r["spec"]["clusterNetworkPolicy"] = json!({"priority": 1});
        }),
        changed("a finalizer, which would hold it for ever", "must not get finalizers", |r| {
            r["metadata"]["finalizers"] = json!(["east.example.com/held"]);
        }),
        changed("a record with 1,000 labels", "at most 32 labels and 32 annotations", |r| {
            let labels = r["metadata"]["labels"].as_object_mut().unwrap();
            labels.extend((0..1000).map(|n| (format!("l{n}"), json!(""))));
        }),
        changed("a record with 1,000 annotations", "at most 32 labels and 32 annotations", |r| {
            r["metadata"]["annotations"] = (0..1000).map(|n| (format!("a{n}"), json!(""))).collect();
        }),
        changed("raw data", "must not have", |r| r["spec"]["raw"] = json!({"data": "eA=="})),
        changed("an external entity", "must not have", |r| r["spec"]["externalEntity"] = json!({})),
        changed("no cluster", "is of cluster \"\", which", |r| {
            drop(r["spec"].as_object_mut().unwrap().remove("clusterID"));
        }),
        Attempt {
            what: "an announce of somebody else",
            kind: announces(),
            todo: Do::Create(json!({"metadata": {"name": announce("east")}, "clusterID": "south"})),
            says: "clusterID of member-announce-from-east must be east",
        },
        // Canonical for Service `ns/web` of a cluster `east.a`.
        attempt(
            "a Namespace that makes us look like another cluster",
            Do::Create(slice("east", "a.ns", "web")),
            "DNS labels",
        ),
    ]
}

#[e2e::test]
fn a_record_is_what_it_is_named() {
    shared(async |parties| {
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(&parties.east, AREA, &disguised(), wrong).await;
    });
}

#[e2e::test]
fn a_record_stays_about_what_it_was_about() {
    shared(async |parties| {
        let east = &parties.east;
        let record = name::service_export("east", &ServiceName::new("rights", "fixed"));
        Do::Create(service("east", "rights", "fixed")).by(east, AREA, &exports()).await.unwrap();
        let to = |field: &str, value: &str| Do::Patch(record.clone(), json!({"spec": {field: value}}));
        let attempt = |what, todo, says| Attempt { what, kind: exports(), todo, says };
        let attempts = [
            attempt("another cluster", to("clusterID", "south"), "may not act as"),
            attempt("another Namespace", to("namespace", "shop"), "must be named"),
            attempt("another name", to("name", "web"), "must be named"),
            attempt("another kind", to("kind", "EndpointSlice"), "must be named"),
        ];
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(east, AREA, &attempts, wrong).await;
        let status = json!({"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}});
        let judged = Do::PatchStatus(record.clone(), status).by(east, AREA, &exports()).await;
        assert!(judged.as_ref().is_err_and(Refusal::is_deliberate), "{judged:?}");
        Do::Delete(record).by(east, AREA, &exports()).await.unwrap();
    });
}

#[e2e::test]
fn a_member_writes_its_own() {
    shared(async |parties| {
        let east = &parties.east;
        let note = json!({"metadata": {"annotations": {"seen": "east"}}});
        let of = ServiceName::new("rights", "own");
        let dashed = service("east", "rights-dashed", "own");
        let info = json!({"metadata": {"name": "east-clusterinfo"}, "spec": {
            "clusterID": "east", "namespace": "kube-system", "name": "east", "kind": "ClusterInfo",
            "clusterInfo": {"clusterID": "east"},
        }});
        let identity = json!({"metadata": {"name": "east-0123456789abcdef"}, "spec": {
            "clusterID": "east", "kind": "LabelIdentity", "labelIdentity": {"normalizedLabel": "x"},
        }});
        let endpoints = record(
            "east-rights-own-endpoints",
            "east",
            &of,
            "Endpoints",
            &json!({"endpoints": {"subsets": []}}),
        );
        let announced = json!({"metadata": {"name": announce("east")}, "clusterID": "east"});
        let lease = json!({"metadata": {"name": member_lease("east")}, "spec": {"holderIdentity": "east/1"}});
        for (kind, object) in [
            (exports(), service("east", "rights", "own")),
            (exports(), slice("east", "rights", "own")),
            (exports(), dashed),
            (exports(), endpoints),
            (exports(), info),
            (exports(), identity),
            (announces(), announced),
            (leases(), lease),
        ] {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            // The daemon may have been here.
            let _ = Do::Delete(name.clone()).by(east, AREA, &kind).await;
            for todo in [Do::Create(object), Do::Patch(name.clone(), note.clone()), Do::Delete(name.clone())]
            {
                let done = todo.by(east, AREA, &kind).await;
                assert!(done.is_ok(), "{name}: {todo:?}: {done:?}");
            }
        }
        let (report, says) = (json!({"metadata": {"name": "east"}}), json!({"status": {"version": "1"}}));
        let _ = Do::Delete("east".into()).by(east, AREA, &reports()).await;
        for todo in [Do::Create(report), Do::PatchStatus("east".into(), says), Do::Delete("east".into())] {
            let done = todo.by(east, AREA, &reports()).await;
            assert!(done.is_ok(), "{todo:?}: {done:?}");
        }
    });
}

#[e2e::test]
fn what_travels_passes() {
    shared(async |parties| {
        for golden in [
            include_str!("../../../api/tests/golden/export-service.json"),
            include_str!("../../../api/tests/golden/export-slice.json"),
            include_str!("../../../api/tests/golden/export-endpoints.json"),
        ] {
            let mut object: Value = serde_json::from_str(golden).unwrap();
            object["metadata"]["namespace"] = json!(AREA);
            let done = Do::DryCreate(object).by(&parties.east, AREA, &exports()).await;
            assert!(done.is_ok(), "{golden}: {done:?}");
        }
    });
}

#[e2e::test]
fn antreas_names_pass_for_who_may_speak_so() {
    shared(async |parties| {
        let speaks = json!({
            "apiGroups": ["multicluster.crd.antrea.io"], "resources": ["resourceexports"],
            "resourceNames": ["north-1"], "verbs": ["speak-antrea"],
        });
        let mut rules = any_right("north-1");
        let plain = account::with(&parties.world, AREA, "plain-north-1", Rights::Role(rules.clone())).await;
        rules.as_array_mut().unwrap().push(speaks);
        let antrea = account::with(&parties.world, AREA, "antrea-north-1", Rights::Role(rules)).await;
        for golden in [
            include_str!("../../../api/tests/golden/export-service-antrea.json"),
            include_str!("../../../api/tests/golden/export-endpoints-antrea.json"),
        ] {
            let mut object: Value = serde_json::from_str(golden).unwrap();
            object["metadata"]["namespace"] = json!(AREA);
            let create = Do::DryCreate(object.clone());
            eventually("taken, once its rights are known", || async {
                create.by(&antrea, AREA, &exports()).await.map_err(|refusal| format!("{refusal:?}"))
            })
            .await;
            // Antrea's finalizer is a right of its own, and would be refused first.
            object["metadata"]["finalizers"] = Value::Null;
            let named = Do::DryCreate(object.clone());
            eventually("refused for its name, once its rights are known", || async {
                match named.by(&plain, AREA, &exports()).await {
                    Err(refusal) if refusal.is_by_policy("must be named north-1.shop.web.") => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
            object["metadata"]["name"] = json!("free");
            let refusal = Do::DryCreate(object).by(&antrea, AREA, &exports()).await.unwrap_err();
            assert!(refusal.is_by_policy("must be named north-1.shop.web."), "{refusal:?}");
        }
    });
}

/// `north-1-shop-db-` may mean Service `db` of `1-shop` in `north` as well.
#[e2e::test]
fn a_record_with_dashes_everywhere_cannot_be_made_anothers() {
    shared(async |parties| {
        let speaks = json!({
            "apiGroups": ["multicluster.crd.antrea.io"], "resources": ["resourceexports"],
            "resourceNames": ["north"], "verbs": ["speak-antrea"],
        });
        let mut rules = any_right("north");
        rules.as_array_mut().unwrap().push(speaks);
        let north = account::with(&parties.world, AREA, "antrea-north", Rights::Role(rules)).await;
        let golden = include_str!("../../../api/tests/golden/export-service-antrea.json");
        let mut of_north_1: Value = serde_json::from_str(golden).unwrap();
        of_north_1["metadata"]["finalizers"] = Value::Null;
        of_north_1["metadata"]["name"] = json!("north-1-shop-db-service");
        of_north_1["metadata"]["labels"]["sourceName"] = json!("db");
        of_north_1["spec"]["name"] = json!("db");
        let leader = parties.world.leader();
        let record: ResourceExport = leader.create(AREA, of_north_1).await;
        let name = record.name_any();
        let taken = json!({
            "metadata": {"labels": {"sourceClusterID": "north", "sourceNamespace": "1-shop"}},
            "spec": {"clusterID": "north", "namespace": "1-shop"},
        });
        eventually("refused by the policy, once its rights are known", || async {
            match Do::Patch(name.clone(), taken.clone()).by(&north, AREA, &exports()).await {
                Err(refusal) if refusal.is_by_policy("cannot become its") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        leader.delete::<ResourceExport>(AREA, &name).await;
    });
}
