//! Records of offloading: the first cluster in a name writes the record, the second its status, and nobody else anything.

use e2e::{fixture::AREA, waiting::eventually};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::rights::{
    account::{self, Rights},
    attempt::{Attempt, Do, Refusal, try_all},
    parties::{NOT_OURS, Parties, shared},
    records::{map, maps, offer, offers, shadow, shadows},
};

fn note() -> Value {
    json!({"metadata": {"annotations": {"seen": "here"}}})
}

fn said() -> Value {
    json!({"status": {"currentMapping": {"shop": {"remoteNamespace": "shop-x", "phase": "Accepted"}}}})
}

async fn admin(parties: &Parties, todo: Do, kind: &ApiResource) {
    let done = todo.by(&parties.world.leader().client, AREA, kind).await;
    assert!(done.is_ok(), "{todo:?}: {done:?}");
}

fn name(record: &Value) -> String {
    record["metadata"]["name"].as_str().unwrap().to_owned()
}

fn named(mut record: Value, name: &str) -> Do {
    record["metadata"]["name"] = json!(name);
    Do::Create(record)
}

fn changed(mut record: Value, change: impl FnOnce(&mut Value)) -> Do {
    change(&mut record);
    Do::Create(record)
}

/// Of `north`, whose Role allows whatever one may want to try. `1.south.away` and `1.away.north` are there, and the Pod of south there.
fn attempts() -> Vec<Attempt> {
    let of = |what, kind: fn() -> ApiResource, todo, says| Attempt { what, kind: kind(), todo, says };
    let patch = |name: &str, change: Value| Do::Patch(name.into(), change);
    let status = |name: &str| Do::PatchStatus(name.into(), said());
    vec![
        of("another's map", maps, Do::Create(map("south", "north")), NOT_OURS),
        of("another's offer", offers, Do::Create(offer("south", "north")), NOT_OURS),
        of("a change of another's map", maps, patch("1.south.away", note()), NOT_OURS),
        of("a map of its own guests", maps, patch("1.away.north", note()), NOT_OURS),
        of("deletion of another's map", maps, Do::Delete("1.away.north".into()), NOT_OURS),
        of("deletion of another's offer", offers, Do::Delete("1.south.away".into()), NOT_OURS),
        of("the status of a map to others", maps, status("1.south.away"), NOT_OURS),
        of("the status of its own map", maps, status("1.north.away"), NOT_OURS),
        of("another's name", maps, named(map("north", "away"), "1.south.north"), NOT_OURS),
        of("a name of nobody", maps, named(map("north", "away"), "north.away"), "is of cluster \"\", which"),
        of(
            "a name of one cluster",
            maps,
            named(map("north", "away"), "1.north"),
            "is of cluster \"\", which",
        ),
        of(
            "two labels that are one",
            maps,
            named(map("north", "away"), "2.north.away"),
            "is of cluster \"\", which",
        ),
        of("an ID of three labels", maps, named(map("north", "away"), "1.north.a.b.c"), "must be named"),
        of("itself", maps, Do::Create(map("north", "north")), "must be named"),
        of(
            "an origin that its name does not say",
            maps,
            changed(map("north", "away"), |map| map["spec"]["origin"] = json!("south")),
            "must have spec.origin north and spec.destination away",
        ),
        of(
            "a destination that its name does not say",
            maps,
            patch("1.north.away", json!({"spec": {"destination": "south"}})),
            "must have spec.origin north and spec.destination away",
        ),
        of(
            "a home that its name does not say",
            offers,
            changed(offer("north", "away"), |offer| offer["spec"]["home"] = json!("south")),
            "must have spec.host north and spec.home away",
        ),
        of(
            "what keeps a record from going",
            maps,
            patch("1.north.away", json!({"metadata": {"finalizers": ["example.com/forever"]}})),
            "must not have finalizers",
        ),
        of("another's Pod", shadows, Do::Create(shadow("south", "north")), NOT_OURS),
        of("the status of a Pod of others", shadows, status(&name(&shadow("south", "away"))), NOT_OURS),
        of("deletion of another's Pod", shadows, Do::Delete(name(&shadow("south", "away"))), NOT_OURS),
        of(
            "a uid that its name does not say",
            shadows,
            changed(shadow("north", "away"), |pod| pod["spec"]["uid"] = json!("another")),
            " and spec.uid ",
        ),
        of("a Pod without a uid", shadows, named(shadow("north", "away"), "1.north.away"), "must be named"),
        of(
            "what keeps the record of a Pod from going",
            shadows,
            changed(shadow("north", "away"), |pod| pod["metadata"]["finalizers"] = json!(["example.com/x"])),
            "must not have finalizers",
        ),
    ]
}

#[e2e::test]
fn a_record_of_offloading_is_its_first_clusters_and_its_status_the_seconds() {
    shared(async |parties| {
        for record in [map("south", "away"), map("away", "north")] {
            admin(parties, Do::Create(record), &maps()).await;
        }
        admin(parties, Do::Create(offer("south", "away")), &offers()).await;
        admin(parties, Do::Create(shadow("south", "away")), &shadows()).await;
        let north = &parties.north;
        let created = Do::Create(map("north", "away"));
        eventually("its rights are known", || async {
            created.by(north, AREA, &maps()).await.map_err(|refusal| format!("{refusal:?}"))
        })
        .await;
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(north, AREA, &attempts(), wrong).await;
        for (kind, todo) in [
            (maps(), Do::Patch("1.north.away".into(), json!({"spec": {"desiredMapping": {"web": "web"}}}))),
            (maps(), Do::PatchStatus("1.away.north".into(), said())),
            (maps(), Do::Delete("1.north.away".into())),
            (offers(), Do::Create(offer("north", "away"))),
            (offers(), Do::Delete("1.north.away".into())),
        ] {
            let done = todo.by(north, AREA, &kind).await;
            assert!(done.is_ok(), "{todo:?}: {done:?}");
        }
        for name in ["1.south.away", "1.away.north"] {
            admin(parties, Do::Delete(name.into()), &maps()).await;
        }
        admin(parties, Do::Delete("1.south.away".into()), &offers()).await;
        admin(parties, Do::Delete(name(&shadow("south", "away"))), &shadows()).await;
    });
}

#[e2e::test]
fn ids_with_a_dot_are_told_apart() {
    shared(async |parties| {
        let rules = account::any_right("a");
        let short = account::with(&parties.world, AREA, "of-a", Rights::Role(rules)).await;
        let rules = account::any_right("a.b");
        let long = account::with(&parties.world, AREA, "of-a-b", Rights::Role(rules)).await;
        eventually("a writes its map for b.c, once its rights are known", || async {
            let mine = Do::DryCreate(map("a", "b.c")).by(&short, AREA, &maps()).await;
            mine.map_err(|refusal| format!("{refusal:?}"))
        })
        .await;
        eventually("a.b writes its map for c, once its rights are known", || async {
            let mine = Do::DryCreate(map("a.b", "c")).by(&long, AREA, &maps()).await;
            mine.map_err(|refusal| format!("{refusal:?}"))
        })
        .await;
        for (client, theirs, kind) in [
            (&short, map("a.b", "c"), maps()),
            (&long, map("a", "b.c"), maps()),
            (&short, shadow("a.b", "c"), shadows()),
            (&long, shadow("a", "b.c"), shadows()),
        ] {
            let refused = Do::DryCreate(theirs).by(client, AREA, &kind).await.unwrap_err();
            assert!(refused.is_by_policy(NOT_OURS), "{refused:?}");
        }
    });
}

/// With the rights that `freeport join` gives, and no more.
#[e2e::test]
fn a_member_writes_its_own_records_of_offloading() {
    shared(async |parties| {
        let east = &parties.east;
        admin(parties, Do::Create(map("away", "east")), &maps()).await;
        let status = Do::PatchStatus("1.away.east".into(), said());
        let hosted = shadow("away", "east");
        admin(parties, Do::Create(hosted.clone()), &shadows()).await;
        let pod_status = Do::PatchStatus(name(&hosted), json!({"status": {"deleted": true}}));
        let own = |kind: fn() -> ApiResource, record: Value| {
            let name = name(&record);
            [Do::Create(record), Do::Patch(name.clone(), note()), Do::Delete(name)].map(|todo| (kind(), todo))
        };
        for (kind, todo) in [
            vec![(maps(), status), (shadows(), pod_status)],
            own(maps, map("east", "away")).into(),
            own(shadows, shadow("east", "away")).into(),
            own(offers, offer("east", "away")).into(),
        ]
        .concat()
        {
            let done = todo.by(east, AREA, &kind).await;
            assert!(done.is_ok(), "{todo:?}: {done:?}");
        }
        admin(parties, Do::Delete("1.away.east".into()), &maps()).await;
        admin(parties, Do::Delete(name(&hosted)), &shadows()).await;
    });
}
