//! What cannot be exported is said where the user looks, and disturbs nobody.

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use e2e::{
    audit,
    fixture::shared,
    seen::{event, holds, says},
    waiting::{always, eventually},
};

#[e2e::test]
fn r8_r9_r17_what_cannot_be_exported_says_why_and_leaves_no_record() {
    shared(async |world| {
        let ns = world.namespace("invalid", &["east"]).await;
        let east = world.cluster("east");
        let service = |name: &str, rest: Value| {
            let mut object = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
            object["metadata"]["annotations"] = rest["annotations"].clone();
            for (key, value) in rest["spec"].as_object().into_iter().flatten() {
                object["spec"][key] = value.clone();
            }
            object
        };
        let _: Service = east
            .create(
                &ns,
                service("external", json!({"spec": {"type": "ExternalName", "externalName": "example.com"}})),
            )
            .await;
        let imported = json!({"annotations": {"multicluster.antrea.io/imported-service": "true"}});
        let _: Service = east.create(&ns, service("antrea-mc-x", imported)).await;
        let wrong = [
            ("nothing", "NoService"),
            ("external", "InvalidServiceType"),
            ("antrea-mc-x", "ImportedService"),
        ];
        for (name, reason) in wrong {
            east.export(&ns, name).await;
            eventually(name, || says(east, (&ns, name), "Valid", "False", reason)).await;
            eventually(name, || says(east, (&ns, name), "Ready", "False", "Pending")).await;
            eventually("its Event", || event(east, &ns, name, reason)).await;
        }
        let (mark, before) = (audit::mark(world), world.reconciles().await);
        always("nothing is written or tried", || async {
            for (name, _) in wrong {
                holds(world, &ns, name, 0).await?;
            }
            Ok(())
        })
        .await;
        let about: Vec<_> =
            audit::writes(world, &mark).into_iter().filter(|w| w.contains(&format!("/{ns}/"))).collect();
        assert_eq!(about, Vec::<String>::new());
        let reconciles = world.reconciles().await["freeport-member-east"] - before["freeport-member-east"];
        assert!(reconciles < 500.0, "{reconciles} in three seconds: a storm");
        world.release(&ns).await;
    });
}
