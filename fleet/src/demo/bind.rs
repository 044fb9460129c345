//! The demonstration of API binding: somebody creates an object in one cluster, its operator works in another, the status comes back. The
//! operator is played: this demonstration writes the status.

use std::time::Instant;

use api::bind::binding::APIServiceBinding;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::{Error, at, until};
use crate::{
    Cluster, Fleet,
    cluster_set::binding::{Binding, bind},
};

/// Name of the template and of the APIServiceBinding.
pub const NAME: &str = "mangodbs";
/// The API.
pub const API: &str = "mangodbs.provider.example.com";
/// Namespace of the object in the consumer's cluster.
const NAMESPACE: &str = "team";
const OBJECT: &str = "orders";
const FIELD_MANAGER: &str = "quickstart";

/// The provider and the consumer: the first two clusters.
pub fn roles(fleet: &Fleet) -> Option<(&Cluster, &Cluster)> {
    Some((fleet.clusters().first()?, fleet.clusters().get(1)?))
}

/// Binds an API, creates an object, and prints what becomes of it.
///
/// # Errors
/// See [`Error`].
pub async fn run(fleet: &Fleet, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    let Some((provider, consumer)) = roles(fleet) else { return Ok(()) };
    let (there, here) = (provider.client().await?, consumer.client().await?);
    println!("\n2. In {}: an API, {API}, as an operator brings it", provider.name());
    api(&there, provider).await?;
    println!(
        "\n3. `freeport bind provide` and `offer` on {}, `freeport bind apiservice` for {}",
        provider.name(),
        consumer.name()
    );
    bind(fleet, Binding { provider, consumer, api: API, name: NAME }, say).await.map_err(Box::new)?;
    let bindings = Api::<APIServiceBinding>::all(here.clone());
    until(consumer.name(), async || Ok(is_ready(bindings.get(NAME).await?))).await?;
    is_served(&here, consumer).await?;
    println!("   APIServiceBinding {NAME} is ready: {} knows {API}", consumer.name());

    println!("\n4. In {}: MangoDB `{OBJECT}` in Namespace `{NAMESPACE}`", consumer.name());
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    super::apply(Api::all(here.clone()), NAMESPACE, &namespace).await?;
    let begun = Instant::now();
    let objects = Api::<DynamicObject>::namespaced_with(here, NAMESPACE, &resource());
    let object =
        DynamicObject::new(OBJECT, &resource()).data(json!({"spec": {"size": "large", "replicas": 3}}));
    let apply = PatchParams::apply(FIELD_MANAGER).force();
    objects.patch(OBJECT, &apply, &Patch::Apply(&object)).await.map_err(at(consumer.name()))?;
    let copies = Api::<DynamicObject>::all_with(there.clone(), &resource());
    let copy =
        until(provider.name(), async || Ok(copy(copies.list(&ListParams::default()).await?.items))).await?;
    let place = copy.namespace().unwrap_or_default();
    println!(
        "   {:.2} s later it is in {}: {place}/{OBJECT}",
        begun.elapsed().as_secs_f64(),
        provider.name()
    );

    println!("\n5. The operator in {}, played by this demonstration, writes a status", provider.name());
    let begun = Instant::now();
    let endpoint = format!("{OBJECT}.{place}.example.com:27017");
    let status = Patch::Merge(json!({"status": {"phase": "Ready", "endpoint": endpoint}}));
    let copies = Api::<DynamicObject>::namespaced_with(there, &place, &resource());
    copies
        .patch_status(
            OBJECT,
            &PatchParams { field_manager: Some("mango-operator".into()), ..PatchParams::default() },
            &status,
        )
        .await
        .map_err(at(provider.name()))?;
    let has_it = async || {
        let said = objects.get(OBJECT).await?.data["status"]["endpoint"].as_str().map(str::to_owned);
        Ok(if said.as_ref() == Some(&endpoint) {
            Ok(())
        } else {
            Err(format!("status.endpoint is {said:?}"))
        })
    };
    until(consumer.name(), has_it).await?;
    println!("   {:.2} s later {} has it: {endpoint}", begun.elapsed().as_secs_f64(), consumer.name());
    Ok(())
}

fn resource() -> ApiResource {
    ApiResource {
        group: "provider.example.com".into(),
        version: "v1".into(),
        api_version: "provider.example.com/v1".into(),
        kind: "MangoDB".into(),
        plural: NAME.into(),
    }
}

/// Installs the API, and waits until it is served.
async fn api(provider: &Client, cluster: &Cluster) -> Result<(), Error> {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"size": text, "replicas": {"type": "integer", "minimum": 1}}});
    let status = json!({"type": "object", "properties": {"phase": text, "endpoint": text}});
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": API},
        "spec": {
            "group": "provider.example.com", "scope": "Namespaced",
            "names": {"plural": NAME, "singular": "mangodb", "kind": "MangoDB"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                "additionalPrinterColumns": [column("Size", ".spec.size"), column("Phase", ".status.phase"), column("Endpoint", ".status.endpoint")],
            }],
        },
    }))?;
    super::apply(Api::all(provider.clone()), API, &crd).await?;
    is_served(provider, cluster).await
}

async fn is_served(client: &Client, cluster: &Cluster) -> Result<(), Error> {
    let objects = Api::<DynamicObject>::all_with(client.clone(), &resource());
    until(cluster.name(), async || match objects.list(&ListParams::default().limit(1)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Err(format!("{API} is not served yet"))),
        listed => listed.map(|_| Ok(())),
    })
    .await
}

fn is_ready(binding: APIServiceBinding) -> Result<(), String> {
    let conditions = binding.status.unwrap_or_default().conditions;
    match conditions.iter().find(|condition| condition.type_ == "Ready") {
        Some(ready) if ready.status == "True" => Ok(()),
        Some(ready) => {
            Err(format!("APIServiceBinding {NAME}: {}", ready.message.clone().unwrap_or_default()))
        }
        None => Err(format!("APIServiceBinding {NAME}: freeport-member has not seen it yet")),
    }
}

fn copy(copies: Vec<DynamicObject>) -> Result<DynamicObject, String> {
    let copy = copies.into_iter().find(|copy| copy.name_any() == OBJECT);
    copy.ok_or_else(|| format!("there is no MangoDB {OBJECT}"))
}
