//! Leaving: withdraws our records in the Common Area as an export that ended is withdrawn; deletes everything imported here, by name,
//! maker and uid; takes back the status of ServiceExports. Safe to run twice: each step looks at what is left.

use std::time::{Duration, Instant};

use api::{
    antrea::Members,
    label,
    mcs::ServiceImport,
    name,
    view::{self, Meta},
};
use k8s_openapi::api::{
    core::v1::{Endpoints, Service},
    discovery::v1::EndpointSlice,
};
use kit::{
    backoff::Backoff,
    boot::Env,
    failure::{Failure, classify},
    list,
    objects::Change,
    write::{Error, Writer},
};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    Choices,
    export::{ExportCrd, Exporting},
    here::cluster,
    index::{
        entry::Unexported,
        view::{Export, OwnRecord, is_made},
    },
    knowledge::Knowledge,
};
use crate::feature::Access;

/// Metadata of an object, with who wrote it.
type Written<K> = Meta<K, view::Written>;

/// Requests at the same time.
const CONCURRENCY: usize = 16;
/// The leader deletes withdrawn records within moments. That they are withdrawn is enough if it is away.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between attempts to remove Endpoints.
const RETRY: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(30) };
/// Between two lists of the records that are left.
const PAUSE: Duration = Duration::from_secs(1);

/// Withdraws our Service records and removes our slice records, as [`Exporting`] does when no export is left, and gives the
/// leader time to delete what is withdrawn.
pub(super) async fn withdraw(access: &Access) -> Result<(), Failure> {
    let us = &access.us;
    let records = Api::<OwnRecord>::namespaced(access.leader.clone(), &us.common_area);
    let own = ListParams::default().labels(&format!("{}={}", label::SOURCE_CLUSTER_ID, us.cluster));
    let begun = Instant::now();
    loop {
        let records =
            list::all(&records, own.clone(), |record| record).await.map_err(|error| classify(&error))?;
        let exporting = exporting(access, records);
        let services = exporting.knowledge.services.keys();
        if services.is_empty() {
            return Ok(());
        }
        let withdraw = |service| {
            let exporting = exporting.clone();
            async move { Box::pin(exporting.reconcile(service)).await.map(drop) }
        };
        match all(services.into_iter().map(withdraw)).await {
            Ok(()) if begun.elapsed() >= PATIENCE => {
                tracing::info!(
                    "the leader has not deleted the withdrawn records yet; freeport-leader deletes them when it runs again"
                );
                return Ok(());
            }
            // The leader was faster, or wrote the status of a record: the next list shows it.
            Ok(()) | Err(Error::Stale | Error::Gone) => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(error.failure()),
        }
    }
}

/// The controller of exports, where these are our records and no ServiceExport is left.
fn exporting(access: &Access, records: Vec<OwnRecord>) -> Exporting {
    let Access { env, leader, .. } = access;
    // What would be exported does not matter.
    let knowledge = Knowledge::new(cluster(&access.local(), Choices::default()));
    knowledge.services.change(Change::Reset(records));
    // Leaving is a decision, whatever became of the ServiceExports.
    for service in knowledge.services.keys() {
        knowledge.services.note(&service, |entry| entry.unexported = Some(Unexported::Decided));
    }
    Exporting {
        knowledge,
        antrea: Members::default(),
        crd: ExportCrd::new(env.client.clone()),
        home: access.home.clone(),
        writer: Writer::new(leader.clone(), label::MEMBER, "leader", env.metrics.clone()),
        events: env.events.clone(),
    }
}

/// Removes everything imported: we wrote it, under the name that we give it. What somebody copied only has our labels.
pub(super) async fn remove_imports(env: &Env) -> Result<(), Error> {
    let imported = imported();
    let made_by_us = format!("{}={}", label::MANAGED_BY, label::FREEPORT);
    let is_imported = |slice: &Written<EndpointSlice>| name::service_of_slice(&slice.name_any()).is_some();
    // A kind whose deletion is refused does not stop the others.
    let imports = remove::<ServiceImport>(env, &made_by_us, |_| true).await;
    let slices = remove::<EndpointSlice>(env, &imported, is_imported).await;
    let endpoints = remove_endpoints(env).await;
    let services = remove::<Service>(env, &imported, realises).await;
    imports.and(slices).and(endpoints).and(services)
}

/// Whether the name is that of what the label says.
fn realises<K: Resource>(object: &K) -> bool {
    let of = object.labels().get(label::MCS_SERVICE_NAME);
    of.is_some_and(|of| name::realises(&object.name_any(), of))
}

/// Selects what an import consists of. The installer's objects have our label too.
pub(super) fn imported() -> String {
    format!("{}={},{}", label::MANAGED_BY, label::FREEPORT, label::MCS_SERVICE_NAME)
}

/// Who may not list core Endpoints has never written any: the right came with them.
async fn remove_endpoints(env: &Env) -> Result<(), Error> {
    match remove::<Endpoints>(env, &imported(), realises).await {
        Err(Error::Refused(why)) => {
            tracing::info!(why, "not looking for Endpoints of imports, which only --endpoints-objects makes");
            Ok(())
        }
        done => done,
    }
}

/// Removes what `--endpoints-objects` left, of which no watch tells without it. Tries until there is an answer.
pub(super) async fn forget_endpoints(env: Env) {
    for wait in RETRY.waits() {
        match remove_endpoints(&env).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "cannot remove the Endpoints of imports yet"),
        }
        tokio::time::sleep(wait).await;
    }
}

async fn remove<K>(env: &Env, selector: &str, is_named: impl Fn(&Written<K>) -> bool) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let objects = listed::<Written<K>>(&env.client, ListParams::default().labels(selector)).await?;
    let writer = local_writer(env);
    let delete = |object| {
        let writer = writer.clone();
        async move { writer.delete(&object, false).await }
    };
    let is_ours = |object: &Written<K>| is_made(object) && is_named(object);
    all(objects.into_iter().filter(is_ours).map(delete)).await
}

/// Empties the status of ServiceExports, which export nothing any more.
pub(super) async fn clear_status(env: &Env) -> Result<(), Error> {
    let exports = listed::<Export>(&env.client, ListParams::default()).await?;
    let has_status =
        |export: &Export| export.status.0.as_ref().is_ok_and(|status| !status.conditions.is_empty());
    let writer = local_writer(env);
    let clear = |export: Export| {
        let writer = writer.clone();
        async move {
            // An empty list, and not nothing: the API server would take that for a status of null.
            match writer.put_status(&export, &json!({"conditions": []})).await {
                Ok(_) | Err(Error::Gone) => Ok(()),
                Err(error) => Err(error),
            }
        }
    };
    all(exports.into_iter().filter(has_status).map(clear)).await
}

/// All objects of a kind. With its CRD all of them are gone.
async fn listed<K>(client: &Client, which: ListParams) -> Result<Vec<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    match list::all(&Api::<K>::all(client.clone()), which, |object| object).await {
        Ok(objects) => Ok(objects),
        Err(error) if classify(&error) == Failure::KindMissing => Ok(vec![]),
        Err(error) => Err(error.into()),
    }
}

fn local_writer(env: &Env) -> Writer {
    Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone())
}

/// Carries all out, some at a time. The first error is returned, but does not keep the others from being tried.
async fn all<F>(requests: impl Iterator<Item = F>) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let (mut running, mut result) = (JoinSet::new(), Ok(()));
    let mut note = |ended| match ended {
        Ok(Err(error)) if result.is_ok() => result = Err(error),
        Ok(_) => {}
        Err(error) => kit::drive::resume(error),
    };
    for request in requests {
        if running.len() == CONCURRENCY
            && let Some(ended) = running.join_next().await
        {
            note(ended);
        }
        running.spawn(request);
    }
    while let Some(ended) = running.join_next().await {
        note(ended);
    }
    result
}
