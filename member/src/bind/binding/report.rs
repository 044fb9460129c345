//! What came of a pass, said where both sides look. Only differences are written.

use api::{
    bind::{
        binding::{APIServiceBinding, APIServiceBindingStatus, BoundSchemaReference},
        bound_schema::{BoundSchema, BoundSchemaStatus},
        condition::{Answer, Condition, READY, Severity, Verdict, conditions},
        export::{APIServiceExport, APIServiceExportStatus},
        label,
    },
    cluster_set::WRITES_ACCEPTED,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::write::{Error, Writer};
use kube::{Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{Bindings, Found, refused, verdict::ASIDE};
use crate::bind::{
    contract::Contract,
    crd::is_of,
    local::{Crd, CrdCondition, Local},
};

/// Conditions of CRDs of which `False` is the good answer.
const BAD_WHEN_TRUE: &[&str] = &["NonStructuralSchema", "Terminating"];

/// On the binding.
pub(super) async fn on_binding(
    bindings: &Bindings,
    binding: &APIServiceBinding,
    contract: Option<&Contract>,
    mut verdicts: Vec<Verdict>,
) -> Result<(), Error> {
    let have = binding.status.clone().unwrap_or_default();
    let refused = refused::message(bindings, binding, contract);
    verdicts.extend(refused::verdict(refused.as_ref(), &have.conditions));
    let mut want = APIServiceBindingStatus {
        conditions: conditions(&have.conditions, &verdicts, ASIDE, Timestamp::now()),
        ..have.clone()
    };
    if let Some(contract) = contract {
        let (name, export) = contract.known.with(|known| {
            let pretty = known
                .cluster_bindings
                .get("cluster")
                .map(|binding| binding.spec.provider_pretty_name.clone());
            (pretty, known.exports.get(&binding.name_any()).map(|export| export.spec.clone()))
        });
        want.provider_pretty_name = name.or(want.provider_pretty_name);
        if let Some(export) = export {
            let of = |resource: &api::bind::resource::Resource| BoundSchemaReference {
                group: resource.group.clone(),
                resource: resource.resource.clone(),
            };
            want.bound_schemas = export.resources.iter().map(of).collect();
            want.permission_claims = export.permission_claims;
        }
    }
    if let Err(error) = write(&bindings.writer, binding, &have, &want).await {
        if let Some(why) = error.refusal() {
            bindings.env.events.warn(binding.object_ref(&()), "Bind", "Refused", &why);
        }
        return Err(error);
    }
    let was_refused =
        have.conditions.iter().any(|said| said.type_ == WRITES_ACCEPTED && said.status == "False");
    if let Some(message) = refused.filter(|_| !was_refused) {
        bindings.env.events.warn(binding.object_ref(&()), "Bind", "Refused", &message);
    }
    let (before, now) = (ready(&have.conditions), ready(&want.conditions));
    if let Some(ready) =
        now.filter(|now| now.status == "False" && before.map(|b| &b.reason) != Some(&now.reason))
    {
        let (reason, message) = (ready.reason.as_deref(), ready.message.as_deref());
        let reference = binding.object_ref(&());
        bindings.env.events.warn(reference, "Bind", reason.unwrap_or_default(), message.unwrap_or_default());
    }
    name_resources(&bindings.writer, binding, &want).await
}

fn ready(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == READY)
}

/// For the printer column.
async fn name_resources(
    writer: &Writer,
    binding: &APIServiceBinding,
    status: &APIServiceBindingStatus,
) -> Result<(), Error> {
    let names: Vec<_> = status.bound_schemas.iter().map(|schema| schema.resource.as_str()).collect();
    let names = names.join(",");
    if names.is_empty() || binding.annotations().get(label::RESOURCES) == Some(&names) {
        return Ok(());
    }
    let patch = json!({"metadata": {"annotations": {label::RESOURCES: names}}});
    writer.merge(binding, None, patch).await.map(drop)
}

/// On the export of that name, if it is there. `found` is nothing where no binding has its name.
pub(super) async fn on_export(contract: &Contract, name: &str, found: Option<&Found>) -> Result<(), Error> {
    let Some(export) = contract.known.with(|known| known.exports.get(name).cloned()) else { return Ok(()) };
    let info = |reason, message: &str| Answer::No(Severity::Info, reason, message.to_owned());
    let verdicts = match found {
        Some(found) => [
            Verdict::new("Connected", found.connected.clone()),
            Verdict::new("ConsumerInSync", found.in_sync.clone()),
        ],
        None => [
            Verdict::new("Connected", info("APIServiceBindingNotFound", "no APIServiceBinding uses this")),
            Verdict::new("ConsumerInSync", info("NA", "no APIServiceBinding uses this")),
        ],
    };
    let have = export.status.clone().unwrap_or_default();
    let all = conditions(&have.conditions, &verdicts, &[], Timestamp::now());
    // kube-bind has none on exports.
    let all = all.into_iter().filter(|condition| condition.type_ != READY).collect();
    write::<APIServiceExport, _>(
        &contract.writer,
        &export,
        &have,
        &APIServiceExportStatus { conditions: all },
    )
    .await
}

/// On the BoundSchemas of the export of the binding: how its CRDs are here.
pub(super) async fn on_schemas(
    contract: &Contract,
    binding: &APIServiceBinding,
    local: &Local,
) -> Result<(), Error> {
    let name = binding.name_any();
    let schemas: Vec<_> = contract.known.with(|known| {
        let names = known.exports.get(&name).map(|export| export.spec.resources.clone()).unwrap_or_default();
        names.iter().filter_map(|resource| known.schemas.get(&resource.name()).cloned()).collect()
    });
    for schema in schemas {
        let crd = local.known.with(|known| known.crds.get(&schema.name_any()).cloned());
        let Some(crd) = crd.filter(|crd| is_of(crd, binding)) else { continue };
        let have = schema.status.clone().unwrap_or_default();
        let want = as_installed(&crd, &have, Timestamp::now());
        write::<BoundSchema, _>(&contract.writer, &schema, &have, &want).await?;
    }
    Ok(())
}

fn as_installed(crd: &Crd, have: &BoundSchemaStatus, now: Timestamp) -> BoundSchemaStatus {
    // A time that says nothing stays what it was written as first: `now` again and again would be a write each time.
    let since = |condition: &CrdCondition| {
        let said = condition.last_transition_time.0.clone().ok().flatten();
        let before = have.conditions.iter().find(|before| before.type_ == condition.type_);
        let before = before.filter(|before| before.status == condition.status);
        said.or_else(|| before?.last_transition_time.clone()).unwrap_or(Time(now))
    };
    let of_crd = crd.status.conditions.iter().map(|condition| Condition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        severity: Some(if condition.status == "True" { String::new() } else { "Error".to_owned() }),
        last_transition_time: Some(since(condition)),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    });
    let mut all: Vec<_> = of_crd.filter(|condition| condition.type_ != READY).collect();
    // What says the same since then keeps its time.
    all.extend(ready(&have.conditions).cloned());
    BoundSchemaStatus {
        accepted_names: Some(crd.status.accepted_names.clone()),
        stored_versions: crd.status.stored_versions.clone(),
        conditions: conditions(&all, &[], BAD_WHEN_TRUE, now),
    }
}

async fn write<P, S>(writer: &Writer, of: &P, have: &S, want: &S) -> Result<(), Error>
where
    P: Resource<DynamicType = ()> + DeserializeOwned,
    S: Serialize,
{
    let (have, want) = (serde_json::to_value(have)?, serde_json::to_value(want)?);
    if have == want {
        return Ok(());
    }
    let patch = json!({"metadata": {"resourceVersion": of.resource_version()}, "status": want});
    match writer.merge(of, Some("status"), patch).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
