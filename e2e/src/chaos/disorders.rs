//! Faults, made and ended.

use std::time::Duration;

use api::{resource_export::ResourceExport, resource_import::ResourceImport};
use fleet::Component;
use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, api::DeleteParams};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;

use super::{
    crew::{Crew, Role},
    places::Places,
    plan::disorder::Disorder,
};
use crate::fixture::{AREA, World};

/// Makes it, and ends it when its time is over.
pub(super) async fn happens(world: &World, crew: &Crew, places: &Places, disorder: &Disorder) {
    match *disorder {
        Disorder::Stop { role, replica } => crew.stop(role, replica).await,
        Disorder::Kill { role, replica, away } => crew.kill(role, replica, away).await,
        Disorder::Pause { role, replica, lasts } => {
            crew.pause(role, replica, true).await;
            sleep(lasts).await;
            crew.pause(role, replica, false).await;
        }
        Disorder::Link { role, side, fault, lasts } => {
            crew.set(role, side, Some(fault));
            sleep(lasts).await;
            crew.set(role, side, None);
        }
        Disorder::ApiServer { cluster, away } => crew.without(cluster, Component::ApiServer, away).await,
        Disorder::Etcd { cluster, away } => crew.without(cluster, Component::Etcd, away).await,
        Disorder::Restored { cluster, age } => {
            let backup = world.back_up(cluster).await;
            sleep(age).await;
            world.restore(&backup).await;
        }
        Disorder::RecordsLost { paused, lasts } => {
            for role in [Role::Leader, paused] {
                crew.pause_all(role, true).await;
            }
            lose_records(world, places).await;
            sleep(lasts).await;
            for role in [Role::Leader, paused] {
                crew.pause_all(role, false).await;
            }
        }
    }
}

/// Deletes all records of the run. Where the API server does not answer, nothing is lost.
async fn lose_records(world: &World, places: &Places) {
    let lost = async {
        lose::<ResourceImport>(world, places).await;
        lose::<ResourceExport>(world, places).await;
    };
    drop(tokio::time::timeout(Duration::from_secs(5), lost).await);
}

async fn lose<K>(world: &World, places: &Places)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let records = world.leader().listed::<K>(AREA).await.unwrap_or_default();
    let name = |record: &Value| {
        let namespace = record["spec"]["namespace"].as_str()?;
        let name = record["metadata"]["name"].as_str()?;
        namespace.starts_with(&places.prefix).then(|| name.to_owned())
    };
    for record in records.iter().filter_map(name) {
        // Gone already.
        drop(world.leader().api::<K>(AREA).delete(&record, &DeleteParams::default()).await);
    }
}
