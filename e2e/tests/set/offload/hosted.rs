//! Pods of another cluster at their host. No kubelet runs here: what it would say of them, these tests say.

use api::offload::{
    map::NamespaceMap,
    offer::OffloadOffer,
    seal::{KEY_LENGTH, PrivateKey},
    shadow_pod::ShadowPod,
};
use e2e::{
    daemon::End,
    fixture::{AREA, SYSTEM, World},
    waiting::{always, eventually},
};
use k8s_openapi::api::{core::v1::Pod, rbac::v1::RoleBinding};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    guest::{Guest, MAP, plain},
    world::{OFFLOADING, gone, peer},
};

/// As a kubelet says that a Pod runs, probed at this second.
fn running(second: u8) -> Value {
    json!({
        "phase": "Running",
        "startTime": "2026-11-01T12:00:00Z",
        "podIP": "10.9.0.1", "podIPs": [{"ip": "10.9.0.1"}],
        "conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": "2026-11-01T12:00:01Z",
            "lastProbeTime": format!("2026-11-01T12:00:{second:02}Z"),
        }],
        "containerStatuses": [{
            "name": "web", "image": "example.com/web:1", "imageID": "sha256:1", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-11-01T12:00:01Z"}},
        }],
    })
}

async fn made(guest: &Guest<'_>, name: &str) -> Pod {
    eventually(&format!("Pod {name} is made"), || async {
        guest.pods().get(name).await.map_err(|error| error.to_string())
    })
    .await
}

/// Waits for another Pod of that name.
async fn made_again(guest: &Guest<'_>, name: &str, before: &Pod) -> Pod {
    eventually(&format!("Pod {name} is made again"), || async {
        let now = guest.pods().get(name).await.map_err(|error| error.to_string())?;
        if now.uid() == before.uid() { Err("still the old one".to_owned()) } else { Ok(now) }
    })
    .await
}

#[e2e::test]
fn a_pod_of_another_cluster_runs_in_its_twin_and_its_home_knows_how_it_is() {
    OFFLOADING.alone(async |world| {
        let guest = Guest::new(world, "hosted").await;
        let record = guest.write(&guest.asks("web", "u-1", plain())).await;
        let pod = made(&guest, "web").await;
        guest.is_told(&record, "Accepted").await;
        let labels = json!(pod.labels());
        for (key, value) in [
            ("app", "web"),
            ("liqo.io/managed-by", "shadowpod"),
            ("offloading.liqo.io/origin", "south"),
            ("multicluster.freeport.dev/origin-uid", "u-1"),
        ] {
            assert_eq!(labels[key], value, "{labels}");
        }
        assert_eq!(pod.spec.as_ref().unwrap().automount_service_account_token, Some(false));

        guest.kubelet_says("web", &running(1)).await;
        let said = guest.is_in(&record, "Running").await.pod.unwrap();
        assert_eq!(said.pod_ips[0].ip, "10.9.0.1");
        assert!(said.container_statuses[0].ready && said.conditions.iter().any(|c| c.type_ == "Ready"));
        let records = world.leader().api::<ShadowPod>(AREA);
        let before = records.get(&record).await.unwrap().meta().resource_version.clone();
        guest.kubelet_says("web", &running(2)).await;
        always("a probe is no news", || async {
            let now = records.get(&record).await.map_err(|error| error.to_string())?;
            if now.meta().resource_version == before { Ok(()) } else { Err(format!("{:?}", now.status)) }
        })
        .await;

        let strip = json!({"metadata": {"labels": {
            "app": null, "liqo.io/managed-by": null, "offloading.liqo.io/origin": null, "theirs": "stays",
        }}});
        guest.pods().patch("web", &PatchParams::default(), &Patch::Merge(strip)).await.unwrap();
        eventually("labels are put back", || async {
            let now = json!(guest.pods().get("web").await.unwrap().labels());
            let is_whole =
                now["app"] == "web" && now["liqo.io/managed-by"] == "shadowpod" && now["theirs"] == "stays";
            if is_whole { Ok(()) } else { Err(format!("{now}; {}", world.log_tail("freeport-member-east"))) }
        })
        .await;
        assert_eq!(guest.pods().get("web").await.unwrap().uid(), pod.uid());

        guest.pods().delete("web", &DeleteParams::default()).await.unwrap();
        let again = made_again(&guest, "web", &pod).await;
        guest.is_in(&record, "Pending").await;
        guest.kubelet_says("web", &running(3)).await;
        guest.is_in(&record, "Running").await;
        guest.take_back(&record, 0).await;
        guest.is_deleted(&record).await;
        assert!(guest.pods().get_opt("web").await.unwrap().is_none_or(|pod| pod.uid() != again.uid()));
        guest.leave(&[&record]).await;
    });
}

#[e2e::test]
fn a_pod_that_has_finished_is_never_made_again() {
    OFFLOADING.alone(async |world| {
        let guest = Guest::new(world, "finished").await;
        let record = guest.write(&guest.asks("job", "u-2", plain())).await;
        made(&guest, "job").await;
        guest.kubelet_says("job", &json!({"phase": "Succeeded"})).await;
        guest.is_in(&record, "Succeeded").await;
        guest.pods().delete("job", &DeleteParams::default()).await.unwrap();
        let stays_away = || async {
            let there = guest.pods().get_opt("job").await.unwrap();
            there.map_or(Ok(()), |pod| Err(format!("{:?}", pod.status)))
        };
        always("it stays away", stays_away).await;
        world.end("freeport-member-east", End::Stop).await;
        world.launch("freeport-member-east").await;
        guest.take_back(&record, 0).await;
        guest.is_deleted(&record).await;
        stays_away().await.unwrap();
        assert_eq!(guest.is_in(&record, "Succeeded").await.conditions[0].reason, "Accepted");
        guest.leave(&[&record]).await;
    });
}

#[e2e::test(real)]
fn what_a_hostile_home_asks_for_is_refused_and_it_is_told_why() {
    OFFLOADING.alone(async |world| {
        let guest = Guest::new(world, "hostile").await;
        let container = |more: Value| {
            let mut spec = plain();
            spec["containers"][0].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec
        };
        let with = |field: &str, value: Value| {
            let mut spec = plain();
            spec[field] = value;
            spec
        };
        let mighty = container(json!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}));
        let mounted = with("volumes", json!([{"name": "v", "hostPath": {"path": "/"}}]));
        let another = PrivateKey::read(&[9; KEY_LENGTH]).unwrap().public();
        let twin = guest.twin.clone();
        let mut records = Vec::new();
        for (pod, spec, reason, words) in [
            ("mighty", guest.asks("mighty", "h-1", mighty), "Refused", "violates PodSecurity"),
            ("mounted", guest.asks("mounted", "h-2", mounted), "FieldRefused", "spec.volumes[v].hostPath"),
            ("no-pod", guest.asks("no-pod", "h-3", json!({"containers": []})), "Refused", "containers"),
            ("sealed", guest.asks_in(&twin, "sealed", "h-4", plain(), &another), "CannotOpen", "sealed"),
        ] {
            let record = guest.write(&spec).await;
            let message = guest.is_told(&record, reason).await;
            assert!(message.contains(words), "{message}");
            assert!(guest.pods().get_opt(pod).await.unwrap().is_none(), "{pod}");
            records.push(record);
        }
        let ours = guest.key();
        for (uid, namespace) in [("h-5", "kube-system"), ("h-6", "default")] {
            let record = guest.write(&guest.asks_in(namespace, "escaped", uid, plain(), &ours)).await;
            let message = guest.is_told(&record, "NoTwin").await;
            assert!(message.contains(&format!("Namespace {namespace} is no twin")), "{message}");
            let there = world.cluster("east").api::<Pod>(namespace).get_opt("escaped").await.unwrap();
            assert!(there.is_none(), "{namespace}");
            records.push(record);
        }
        // Host namespaces and accounts are of the home: the rest of the Pod comes.
        let spec = json!({
            "containers": [{"name": "web", "image": "example.com/web:1"}],
            "hostNetwork": true, "hostPID": true, "nodeName": "a-node", "serviceAccountName": "admin",
        });
        records.push(guest.write(&guest.asks("stripped", "h-7", spec)).await);
        let spec = made(&guest, "stripped").await.spec.unwrap();
        assert_eq!((spec.host_network.unwrap_or_default(), spec.node_name), (false, None));
        assert_eq!(spec.service_account_name.as_deref(), Some("default"));
        twins_that_it_may_not_have(world).await;
        let records: Vec<_> = records.iter().map(String::as_str).collect();
        guest.leave(&records).await;
        gone(world, "east", "team-a").await;
    });
}

/// Names that are not for it, and one more than its host allows.
async fn twins_that_it_may_not_have(world: &World) {
    let step = json!({"step": "narrow"});
    let incoming =
        json!({"namespaces": ["kube-*", "default", "team-*"], "maxNamespaces": 2, "nodeLabels": step});
    peer(world.cluster("east"), "south", json!({"incoming": incoming})).await;
    eventually("east has heard of it", || async {
        let offers = world.leader().api::<OffloadOffer>(AREA);
        let offer = offers.get("1.east.south").await.map_err(|error| error.to_string())?;
        if offer.spec.node_labels.contains_key("step") { Ok(()) } else { Err(format!("{:?}", offer.spec)) }
    })
    .await;
    let maps = world.leader().api::<NamespaceMap>(AREA);
    let wanted = json!({
        "a": "team-a", "b": "kube-system", "c": "kube-mine", "d": "default", "e": "mine", "f": SYSTEM,
        "z": "z-south",
    });
    let patch = Patch::Merge(json!({"spec": {"desiredMapping": wanted}}));
    maps.patch(MAP, &PatchParams::default(), &patch).await.unwrap();
    let current = eventually("all are answered", || async {
        let status = maps.get(MAP).await.map_err(|error| error.to_string())?.status.unwrap_or_default();
        let current = status.current_mapping;
        let has_twin = current.get("a").is_some_and(|entry| entry.phase == "Accepted");
        let answered = ["b", "c", "d", "e", "f", "z"].iter().all(|name| current.contains_key(*name));
        if has_twin && answered { Ok(current) } else { Err(format!("{current:?}")) }
    })
    .await;
    let reason = |name: &str| current[name].reason.as_deref().unwrap_or_default();
    // A name that is there is refused with the same word as one that is not.
    assert_eq!(["b", "c", "d"].map(reason), ["NameReserved"; 3]);
    assert_eq!(["e", "f", "z"].map(reason), ["NameNotAllowed", "NameNotAllowed", "TooManyNamespaces"]);
}

#[e2e::test]
fn a_name_that_is_taken_is_left_alone_and_used_when_it_is_free() {
    OFFLOADING.alone(async |world| {
        let guest = Guest::new(world, "taken-pod").await;
        let foreign: Pod =
            serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": plain()})).unwrap();
        let foreign = guest.pods().create(&PostParams::default(), &foreign).await.unwrap();
        let record = guest.write(&guest.asks("web", "u-3", plain())).await;
        guest.is_told(&record, "NameTaken").await;
        let there = guest.pods().get("web").await.unwrap();
        assert_eq!(there.meta().resource_version, foreign.meta().resource_version);
        guest.pods().delete("web", &DeleteParams::default()).await.unwrap();
        guest.is_told(&record, "Accepted").await;

        // The home makes it anew under the same name before the old one has gone.
        let next = guest.write(&guest.asks("web", "u-4", plain())).await;
        guest.is_told(&next, "NameTaken").await;
        guest.take_back(&record, 0).await;
        guest.is_told(&next, "Accepted").await;
        guest.is_deleted(&record).await;
        assert_eq!(
            guest.pods().get("web").await.unwrap().labels()["multicluster.freeport.dev/origin-uid"],
            "u-4"
        );
        guest.leave(&[&record, &next]).await;
    });
}

#[e2e::test]
fn what_vanishes_takes_no_hosted_pod_along() {
    OFFLOADING.alone(async |world| {
        let east = world.cluster("east");
        let guest = Guest::new(world, "lasting").await;
        let spec = guest.asks("web", "u-5", plain());
        let record = guest.write(&spec).await;
        let pod = made(&guest, "web").await;
        guest.is_told(&record, "Accepted").await;
        let stays = || async {
            let now = guest.pods().get("web").await.map_err(|error| error.to_string())?;
            match now.uid() == pod.uid() && now.metadata.deletion_timestamp.is_none() {
                true => Ok(()),
                false => Err(format!("{:?}", now.metadata)),
            }
        };

        world.leader().delete::<ShadowPod>(AREA, &record).await;
        always("a record that vanished takes nothing along", stays).await;
        guest.write(&spec).await;
        guest.is_told(&record, "Accepted").await;

        peer(east, "south", json!({"incoming": null})).await;
        // The record and the consent are told by different API servers: east has heard of the consent when its offer goes.
        eventually("the offer is taken back", || async {
            let offers = world.leader().api::<OffloadOffer>(AREA);
            let there = offers.get_opt("1.east.south").await.map_err(|error| error.to_string())?;
            there.map_or(Ok(()), |_| Err(format!("it is there; {}", world.log_tail("freeport-member-east"))))
        })
        .await;
        let refused = guest.write(&guest.asks("more", "u-6", plain())).await;
        let message = guest.is_told(&refused, "NotAccepted").await;
        assert!(message.contains("freeport offload accept south"), "{message}");
        always("a consent that is withdrawn takes nothing along", stays).await;
        guest.kubelet_says("web", &running(1)).await;
        guest.is_in(&record, "Running").await;
        peer(east, "south", json!({"incoming": {}})).await;
        made(&guest, "more").await;

        let bindings = east.api::<RoleBinding>(&guest.twin);
        bindings.delete("freeport-offload", &DeleteParams::default()).await.unwrap();
        let is_back = || async {
            let binding = bindings.get("freeport-offload").await.map_err(|error| error.to_string())?;
            let subjects = json!(binding.subjects);
            match subjects.as_array().is_some_and(|all| all.len() == 1)
                && subjects[0]["name"] == "freeport-member"
            {
                true => Ok(()),
                false => Err(format!("{subjects}; {}", world.log_tail("freeport-member-east"))),
            }
        };
        eventually("the RoleBinding is put back", is_back).await;
        let others =
            json!({"subjects": [{"kind": "ServiceAccount", "name": "other", "namespace": "default"}]});
        let _: RoleBinding = east.patch(&guest.twin, "freeport-offload", &others).await;
        eventually("its subject is put back", is_back).await;
        guest.leave(&[&record, &refused]).await;
    });
}
