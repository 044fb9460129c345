//! Imports that are not made though nothing failed: more than a cluster makes, or without their Namespace.

use api::cluster_set::IMPORTS_COMPLETE;
use e2e::{
    cluster_set::status,
    daemon::End,
    fixture::{SET, SYSTEM, World, alone},
    seen::{event, imported, not_imported},
    waiting::{always, eventually},
};

const EAST: &str = "freeport-member-east";

/// Waits until `east` says of its imports that this one waits, and why. The message.
async fn waits(world: &World, import: &str, reason: &str) -> String {
    eventually(&format!("{import} waits: {reason}"), || async {
        let (why, message) = said(world).await?;
        let measured = world.metrics(EAST).await?.of("freeport_imports_waiting", "reason", reason);
        if why == reason && message.contains(import) && measured >= Some(1.0) {
            return Ok(message);
        }
        Err(format!("{why}: {message}, {measured:?}; its log:\n{}", world.log_tail(EAST)))
    })
    .await
}

/// Waits until `east` has nothing to say of this test's imports. Other tests may have left some.
async fn nothing_waits(world: &World) {
    eventually("nothing waits", || async {
        let (why, message) = said(world).await?;
        if message.contains("bound") { Err(format!("{why}: {message}")) } else { Ok(()) }
    })
    .await;
}

/// Reason and message of what `east` says of its imports.
async fn said(world: &World) -> Result<(String, String), String> {
    let conditions = status(world.cluster("east"), SYSTEM).await?.conditions;
    let said = conditions.into_iter().find(|c| c.type_.as_deref() == Some(IMPORTS_COMPLETE));
    let said = said.ok_or("nothing is said")?;
    Ok((said.reason.unwrap_or_default(), said.message.unwrap_or_default()))
}

/// Issue 14, A4 and A9.
#[e2e::test(real)]
fn a4_a9_more_imports_than_a_cluster_makes_wait_and_so_do_those_without_a_namespace() {
    alone(async |world| {
        let ns = &world.namespace("bound", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for service in ["a", "b"] {
            west.exported(ns, service, &["10.2.0.1"]).await;
            eventually(service, || imported(east, ns, service)).await;
        }
        world.end(EAST, End::Stop).await;
        let daemon = world.real().daemons.iter().find(|daemon| daemon.spec.name == EAST).unwrap();
        world.real().fleet.run(daemon.spec.clone().args(["--max-imports", "1"])).await.unwrap();
        nothing_waits(world).await;

        west.exported(ns, "c", &["10.2.0.3"]).await;
        let message = waits(world, "bound/c", "TooManyImports").await;
        assert!(message.contains("--max-imports"), "{message}");
        eventually("its Event", || event(east, SYSTEM, SET, "TooManyImports")).await;
        always("what is here stays, what is new waits", || async {
            imported(east, ns, "a").await?;
            imported(east, ns, "b").await?;
            not_imported(east, ns, "c").await
        })
        .await;
        let elsewhere = &world.namespace("bound-elsewhere", &["west"]).await;
        west.exported(elsewhere, "web", &["10.2.0.4"]).await;
        waits(world, "bound-elsewhere/web", "TooManyImports").await;

        for service in ["a", "b"] {
            west.unexport(ns, service).await;
        }
        eventually("there is room", || imported(east, ns, "c")).await;
        waits(world, "bound-elsewhere/web", "NamespaceMissing").await;
        eventually("its Event", || event(east, SYSTEM, SET, "NamespaceMissing")).await;

        west.unexport(ns, "c").await;
        world.end(EAST, End::Stop).await;
        world.start(EAST).await;
        east.create_namespace(elsewhere).await;
        eventually("imported once the Namespace is there", || imported(east, elsewhere, "web")).await;
        nothing_waits(world).await;
        for namespace in [ns, elsewhere] {
            world.release(namespace).await;
        }
    });
}
