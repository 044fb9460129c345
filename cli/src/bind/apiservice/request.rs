//! Asks for the API in the cluster namespace, with the credential that the binding is going to use.

use api::{
    bind::{
        export::{
            APIServiceExport, APIServiceExportRequest, APIServiceExportRequestSpec,
            APIServiceExportRequestStatus, Phase,
        },
        identity,
        label::IDENTITY,
        resource::Resource,
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kit::client::kubeconfig::Target;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};

use super::Consumer;
use crate::{
    Error,
    bind::consent,
    cluster::{Cluster, known},
    install::{Installer, MANAGER},
    objects::Object,
    printable::printable,
    rollout,
};

/// Says what would be asked for, as a comment: it is for the provider, and what else is printed is for the consumer.
pub(super) fn preview(
    here: &mut Installer<'_>,
    name: &str,
    target: &Target,
    wanted: Option<&APIServiceExportRequestSpec>,
) -> Result<(), Error> {
    let mut text = format!(
        "---\n# Before that, with the credential, in Namespace {} of the provider:",
        target.namespace
    );
    if let Some(wanted) = wanted {
        let request = Object::new(&APIServiceExportRequest::new(name, wanted.clone()));
        let yaml = request.yaml().map_err(|source| Error::Yaml { object: request.to_string(), source })?;
        yaml.lines().for_each(|line| text.push_str(&format!("\n#   {line}")));
    }
    here.say_plainly(&text);
    Ok(())
}

impl Consumer<'_> {
    /// The APIs of the export of this name, which is asked for unless it is there.
    pub(super) async fn granted(
        &self,
        here: &mut Installer<'_>,
        contract: &Contract,
        exported: Option<Vec<Resource>>,
        wanted: Option<&APIServiceExportRequestSpec>,
        agreed: &[Resource],
    ) -> Result<Vec<Resource>, Error> {
        if let Some(apis) = exported {
            here.say(&format!("APIServiceExport {} is there already", self.name));
            return Ok(apis);
        }
        let apis = contract.asked(here, self.name, wanted).await?;
        consent::is_within(self.cluster, self.name, &apis, agreed)?;
        Ok(apis)
    }
}

/// The cluster namespace, by its credential.
pub(super) struct Contract {
    pub(super) provider: Cluster,
    pub(super) namespace: String,
}

impl Contract {
    pub(super) fn connect(consumer: &Cluster, target: &Target) -> Result<Self, Error> {
        let client = target.connect();
        let client = client
            .map_err(|why| consumer.refuse(format!("the provider's kubeconfig cannot be used: {why}")))?;
        let provider = Cluster {
            name: "provider".into(),
            server: target.server(),
            ca: None,
            tls_server_name: None,
            uid: String::new(),
            client,
            limit: consumer.limit,
            taken_at: None,
        };
        Ok(Self { provider, namespace: target.namespace.clone() })
    }

    /// The uid of the cluster namespace. Refuses a contract that the provider made for another cluster, whose objects would seem to be deleted
    /// here, unless the consumer takes it over or has done so.
    pub(super) async fn is_of(&self, consumer: &Cluster, take_over: bool) -> Result<Option<String>, Error> {
        let namespaces: Api<Meta<Namespace>> = Api::all(self.provider.client.clone());
        let read = namespaces.get(&self.namespace);
        let namespace = self.provider.request(format!("read Namespace {}", self.namespace), read).await?;
        let identity = namespace.annotations().get(IDENTITY).map(String::as_str);
        match identity::of_another(identity, &consumer.uid) {
            Some(other) if !take_over && !self.is_held_by(consumer).await? => {
                Err(consumer.refuse(format!(
                    "the credential is of the cluster whose Namespace kube-system has the uid {other}, and here it has {}: ask the provider for \
                     one with --only provider --identity {}; if that cluster is gone for good, and this one goes on in its place, run this with \
                     --take-over",
                    consumer.uid, consumer.uid
                )))
            }
            _ => Ok(namespace.uid()),
        }
    }

    /// Asks for the export of this name, and waits for it; its APIs.
    async fn asked(
        &self,
        here: &mut Installer<'_>,
        name: &str,
        wanted: Option<&APIServiceExportRequestSpec>,
    ) -> Result<Vec<Resource>, Error> {
        let Some(wanted) = wanted else {
            return Err(here.cluster.refuse(format!(
                "the provider does not say what to ask for, and there is no APIServiceExport {name} in {}",
                self.namespace
            )));
        };
        self.ask(here, name, wanted).await?;
        let missing = format!(
            "the provider has granted APIServiceExportRequest {name}, and there is no APIServiceExport yet"
        );
        here.until(&missing, async |_| self.exported(name).await).await
    }

    pub(super) async fn exported(&self, name: &str) -> Result<Option<Vec<Resource>>, Error> {
        let exports: Api<APIServiceExport> = Api::namespaced(self.provider.client.clone(), &self.namespace);
        let read = known(exports.get(name));
        let export =
            self.provider.request(format!("read APIServiceExport {}/{name}", self.namespace), read).await?;
        Ok(export
            .filter(|export| export.metadata.deletion_timestamp.is_none())
            .map(|export| export.spec.resources))
    }

    /// Asks, and waits until it is granted. A request of this name that failed is asked again.
    async fn ask(
        &self,
        here: &mut Installer<'_>,
        name: &str,
        wanted: &APIServiceExportRequestSpec,
    ) -> Result<(), Error> {
        let asked: Api<APIServiceExportRequest> =
            Api::namespaced(self.provider.client.clone(), &self.namespace);
        let called = format!("APIServiceExportRequest {}/{name}", self.namespace);
        let had = self.provider.request(format!("read {called}"), known(asked.get(name))).await?;
        let is_asked = had.as_ref().is_some_and(|had| is_waiting(had) && had.spec == *wanted);
        if had.as_ref().is_some_and(|had| is_waiting(had) && had.spec != *wanted) {
            return Err(self.provider.refuse(format!(
                "{called} asks for other APIs and has not been answered yet: somebody else may have created it. Use another name, or delete it"
            )));
        }
        let forget = async |request: &APIServiceExportRequest| {
            let preconditions = Preconditions { uid: request.uid(), resource_version: None };
            let params = DeleteParams::default().preconditions(preconditions);
            let delete = known(asked.delete(name, &params));
            self.provider.request(format!("delete {called}"), delete).await
        };
        if let Some(had) = had.as_ref().filter(|_| !is_asked) {
            forget(had).await?;
        }
        let mut ours = None;
        if !is_asked {
            let body = APIServiceExportRequest::new(name, wanted.clone());
            let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
            let create = asked.create(&params, &body);
            ours = Some(self.provider.request(format!("create {called}"), create).await?);
            here.say(&format!("asked the provider for the API: {called}"));
        }
        let probe = async || {
            let status = self.provider.request(format!("read {called}"), asked.get(name)).await?.status;
            let status = status.unwrap_or_default();
            match status.phase {
                Phase::Succeeded => Ok(Ok(())),
                Phase::Failed => Err(self.provider.refuse(format!(
                    "{called} failed: {}",
                    status.terminal_message.unwrap_or_else(|| "it does not say why".to_owned())
                ))),
                Phase::Pending => Ok(Err(waits_for(&status))),
            }
        };
        let limit = here.run.timeout;
        let waiting = |message: &str| here.say(&format!("waiting for {called}: {message}"));
        let Err(message) = rollout::wait(limit, probe, waiting).await? else { return Ok(()) };
        // Granted later, it would be an export that nobody waits for. What somebody else asked for is theirs.
        if let Some(ours) = &ours {
            drop(forget(ours).await);
        }
        Err(Error::Timeout {
            cluster: self.provider.name.clone(),
            missing: format!("{called}: {message}"),
            limit,
        })
    }
}

/// Whether a request has not been answered yet.
fn is_waiting(had: &APIServiceExportRequest) -> bool {
    let phase = had.status.clone().unwrap_or_default().phase;
    phase == Phase::Pending && had.metadata.deletion_timestamp.is_none()
}

/// What the provider says of a request that it has not answered yet.
fn waits_for(status: &APIServiceExportRequestStatus) -> String {
    let mut said = status.conditions.iter().filter(|condition| condition.status == "False");
    let message = said.find_map(|condition| condition.message.clone());
    message.map_or_else(|| "the provider has not answered yet".to_owned(), |message| printable(&message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_request_that_waits_says_for_what() {
        let status = |conditions: Value| {
            serde_json::from_value(json!({"phase": "Pending", "conditions": conditions})).unwrap()
        };
        assert_eq!(waits_for(&status(json!([]))), "the provider has not answered yet");
        let refused = json!([{"type": "ExportsReady", "status": "False", "reason": "Refused", "message": "over quota",
            "lastTransitionTime": null}]);
        assert_eq!(waits_for(&status(refused)), "over quota");
    }

    #[test]
    fn a_request_that_failed_is_not_waited_for() {
        let resource = |name: &str| json!({"resources": [{"group": "g.example.com", "resource": name, "versions": ["v1"]}]});
        let spec =
            |name: &str| -> APIServiceExportRequestSpec { serde_json::from_value(resource(name)).unwrap() };
        let had = APIServiceExportRequest::new("mango", spec("mangos"));
        assert!(is_waiting(&had));
        let mut failed = had;
        failed.status = serde_json::from_value(json!({"phase": "Failed"})).unwrap();
        assert!(!is_waiting(&failed));
    }
}
