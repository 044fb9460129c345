//! Asks for the API in the cluster namespace, with the credential that the binding is going to use.

use api::bind::{
    export::{APIServiceExport, APIServiceExportRequest, APIServiceExportRequestSpec, Phase},
    resource::Resource,
};
use kit::client::kubeconfig::Target;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};

use crate::{
    Error,
    cluster::{Cluster, known},
    install::{Installer, MANAGER},
    rollout,
};

/// The APIs of the export of this name, which is asked for unless it is there.
pub(super) async fn granted(
    here: &mut Installer<'_>,
    name: &str,
    target: &Target,
    wanted: Option<&APIServiceExportRequestSpec>,
) -> Result<Vec<Resource>, Error> {
    if here.run.dry_run {
        let apis = wanted.map(|wanted| wanted.resources.clone()).unwrap_or_default();
        let names: Vec<_> = apis.iter().map(Resource::name).collect();
        here.say_plainly(&format!(
            "---\n# Before that, with the credential, in Namespace {} of the provider: APIServiceExportRequest {name} for {}",
            target.namespace,
            names.join(", ")
        ));
        return Ok(apis);
    }
    let there = Contract::connect(here, target)?;
    if let Some(apis) = there.exported(name).await? {
        here.say(&format!("APIServiceExport {name} is there already"));
        return Ok(apis);
    }
    let Some(wanted) = wanted else {
        return Err(here.cluster.refuse(format!(
            "the provider does not say what to ask for, and there is no APIServiceExport {name} in {}",
            target.namespace
        )));
    };
    there.ask(here, name, wanted).await?;
    let missing = format!(
        "the provider has granted APIServiceExportRequest {name}, and there is no APIServiceExport yet"
    );
    here.until(&missing, async |_| there.exported(name).await).await
}

/// The cluster namespace, by its credential.
struct Contract {
    provider: Cluster,
    namespace: String,
}

impl Contract {
    fn connect(here: &Installer<'_>, target: &Target) -> Result<Self, Error> {
        let client = target.connect();
        let client = client
            .map_err(|why| here.cluster.refuse(format!("the provider's kubeconfig cannot be used: {why}")))?;
        let provider = Cluster {
            name: "provider".into(),
            server: target.server(),
            ca: None,
            tls_server_name: None,
            uid: String::new(),
            client,
        };
        Ok(Self { provider, namespace: target.namespace.clone() })
    }

    async fn exported(&self, name: &str) -> Result<Option<Vec<Resource>>, Error> {
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
        let phase = had.as_ref().map(|had| had.status.clone().unwrap_or_default().phase);
        if phase.is_some_and(|phase| phase != Phase::Pending) {
            let params = DeleteParams::default();
            let delete = known(asked.delete(name, &params));
            self.provider.request(format!("delete {called}"), delete).await?;
        }
        if phase != Some(Phase::Pending) {
            let body = APIServiceExportRequest::new(name, wanted.clone());
            let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
            self.provider.request(format!("create {called}"), asked.create(&params, &body)).await?;
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
                Phase::Pending => Ok(Err("it is looked at".to_owned())),
            }
        };
        let limit = here.run.timeout;
        let waiting = |message: &str| here.say(&format!("waiting for {called}: {message}"));
        rollout::wait(limit, probe, waiting).await?.map_err(|message| Error::Timeout {
            cluster: self.provider.name.clone(),
            missing: format!("{called}: {message}"),
            limit,
        })
    }
}
