//! What a consumer has in its cluster namespace from the beginning: an account, its rights there, and a kubeconfig that is renewed.
//!
//! Watches cluster namespaces. Writes ServiceAccount and RoleBinding `kube-binder`, `ClusterBinding/cluster` and Secret `kubeconfig` in
//! each, and a FlowSchema of its name. When the token is renewed is noted on the Secret, so a pass that runs twice renews nothing twice.

use std::{fmt::Debug, time::Duration};

use api::{
    bind::{binding::ClusterBinding, label},
    fairness,
};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{ConfigMap, Secret, ServiceAccount},
        flowcontrol::v1::{FlowSchema, ServiceAccountSubject, Subject},
        rbac::v1::RoleBinding,
    },
};
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Api, Resource, ResourceExt, api::PostParams, core::ObjectMeta};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{LOOK_AGAIN, REFUSED, knowledge::Knowledge, known::Place, namespace_owner, refusal};

/// Name of the account, and of its rights.
pub(super) const BINDER: &str = "kube-binder";
/// Name of the Secret, and its key.
pub(super) const KUBECONFIG: &str = "kubeconfig";

/// How often it is renewed at the most: by a clock that is ahead of the API server's each token is over when it is given.
const RENEW_EVERY: Duration = Duration::from_secs(60);

/// How consumers reach this cluster.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub(super) address: String,
    pub(super) server_name: Option<String>,
    /// PEM. None: as Kubernetes gives it to Pods.
    pub(super) authorities: Option<Vec<u8>>,
    pub(super) pretty_name: String,
    pub(super) lifetime: Duration,
}

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    pub(super) reached: Reached,
}

/// The Secret with the credential of a cluster namespace, by its name alone.
pub(super) fn kubeconfig_secret(contract: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(KUBECONFIG.to_owned());
    secret.metadata.namespace = Some(contract.to_owned());
    secret
}

impl Credentials {
    /// One pass of the cluster namespace of this name.
    pub(super) async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(contract) = self.knowledge.known.with(|known| known.contract(&name).cloned()) else {
            return Ok(Outcome::Done);
        };
        let ended = self.keep(&name, &contract).await;
        if let Err(Error::Refused(why)) = &ended {
            self.env.events.warn(contract.object_ref(&()), "Bind", REFUSED, &refusal(why));
        }
        ended
    }

    async fn keep(&self, name: &str, contract: &Place) -> Result<Outcome, Error> {
        let metadata = json!({"name": BINDER, "namespace": name});
        let account = self.ensure::<ServiceAccount>(json!({ "metadata": metadata })).await?;
        self.ensure::<RoleBinding>(json!({
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": BINDER},
            "subjects": [{"kind": "ServiceAccount", "name": BINDER, "namespace": name}],
        }))
        .await?;
        let wait = self.renew(name, &account.uid().unwrap_or_default()).await?;
        // A konnector looks for the Secret when it sees this.
        let binding = self.ensure::<ClusterBinding>(self.cluster_binding(contract)).await?;
        if let Some(patch) = called(&binding, &self.reached.pretty_name) {
            self.writer.merge(&binding, None, patch).await?;
        }
        self.queue(contract).await;
        Ok(Outcome::Requeue(wait.min(LOOK_AGAIN)))
    }

    /// Has its requests wait in a queue of their own. Nobody is refused a credential for want of that: rights of an older Freeport lack it.
    async fn queue(&self, contract: &Place) {
        if let Err(error) = super::ensure(&self.writer, &flow(contract)).await {
            let cluster_namespace = contract.name_any();
            tracing::warn!(cluster_namespace, %error, "its consumer has no queue of its own at the API server");
        }
    }

    fn cluster_binding(&self, contract: &Place) -> Value {
        let annotations: serde_json::Map<_, _> = [label::IDENTITY, label::AUTHOR, label::CLUSTER_PRETTY_NAME]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), json!(contract.annotations().get(key)?))))
            .collect();
        json!({
            "metadata": {"name": "cluster", "namespace": contract.name_any(), "annotations": annotations},
            "spec": {"kubeconfigSecretRef": {"name": KUBECONFIG, "key": KUBECONFIG}, "providerPrettyName": self.reached.pretty_name},
        })
    }

    async fn ensure<P>(&self, want: Value) -> Result<P, Error>
    where
        P: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
    {
        super::ensure(&self.writer, &serde_json::from_value::<P>(want)?).await
    }

    /// Makes the kubeconfig where it is not there, leads elsewhere, is of another account of that name, or half of the life of its token is
    /// over; for how long it stays.
    async fn renew(&self, contract: &str, account: &str) -> Result<Duration, Error> {
        let have = match self.writer.read(&kubeconfig_secret(contract)).await {
            Ok(secret) => Some(secret),
            Err(Error::Gone) => None,
            Err(error) => return Err(error),
        };
        let now = Timestamp::now();
        let authorities = self.authorities().await?;
        if let Some(left) =
            have.as_ref().and_then(|have| stays(have, account, (&self.reached, authorities.as_deref()), now))
        {
            return Ok(left);
        }
        let accounts = Api::<ServiceAccount>::namespaced(self.env.client.clone(), contract);
        let seconds = i64::try_from(self.reached.lifetime.as_secs()).unwrap_or(i64::MAX);
        let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let granted = accounts.create_token_request(BINDER, &PostParams::default(), &request).await?;
        let status = granted.status.unwrap_or_default();
        let (Some(token), Some(expires)) = (status.token, status.expiration_timestamp) else {
            return Err(Error::Refused("the API server granted no token".to_owned()));
        };
        let half = renews_in(now, expires.0);
        let renew_at = now.checked_add(half).unwrap_or(now).to_string();
        let kubeconfig = kubeconfig(contract, &self.reached, authorities.as_deref(), &token);
        let data = json!({KUBECONFIG: ByteString(kubeconfig.to_string().into_bytes())});
        let annotations = json!({label::RENEW_AT: renew_at, label::ACCOUNT_UID: account});
        match have {
            Some(have) => {
                let patch = json!({"metadata": {"annotations": annotations}, "data": data});
                self.writer.merge(&have, None, patch).await?;
            }
            None => {
                let secret = json!({
                    "metadata": {"name": KUBECONFIG, "namespace": contract, "annotations": annotations}, "data": data,
                });
                self.writer.put::<Secret>(None, &serde_json::from_value(secret)?).await?;
            }
        }
        tracing::info!(cluster_namespace = contract, "the consumer has a new credential");
        Ok(half)
    }

    /// PEM; none where nobody says.
    async fn authorities(&self) -> Result<Option<Vec<u8>>, Error> {
        if let Some(authorities) = &self.reached.authorities {
            return Ok(Some(authorities.clone()));
        }
        let mut map = ConfigMap::default();
        map.metadata.name = Some("kube-root-ca.crt".to_owned());
        map.metadata.namespace = Some(self.env.namespace.clone());
        match self.writer.read(&map).await {
            Ok(map) => Ok(map.data.and_then(|mut data| data.remove("ca.crt")).map(String::into_bytes)),
            Err(Error::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What is to be merged where the provider is called otherwise by now.
fn called(have: &ClusterBinding, pretty_name: &str) -> Option<Value> {
    (have.spec.provider_pretty_name != pretty_name)
        .then(|| json!({"spec": {"providerPrettyName": pretty_name}}))
}

/// How long a token stays that counts until then: half of that, which may be less than was asked for.
fn renews_in(now: Timestamp, expires: Timestamp) -> Duration {
    let life = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
    (life / 2).max(RENEW_EVERY)
}

/// Its account on the level of members. It goes with the cluster namespace.
fn flow(contract: &Place) -> FlowSchema {
    let (name, namespace) = (BINDER.to_owned(), contract.name_any());
    let account = ServiceAccountSubject { name, namespace: namespace.clone() };
    let accounts =
        Subject { kind: "ServiceAccount".to_owned(), service_account: Some(account), ..Subject::default() };
    let metadata = ObjectMeta {
        name: Some(namespace),
        owner_references: Some(vec![namespace_owner(contract)]),
        ..ObjectMeta::default()
    };
    FlowSchema { metadata, spec: fairness::flow(accounts), status: None }
}

/// Whether the Secret has a token of this account. That of one that was deleted is worth nothing, also if there is another one of its name.
pub(super) fn is_of(secret: &Secret, account: Option<&str>) -> bool {
    account.is_some() && secret.annotations().get(label::ACCOUNT_UID).map(String::as_str) == account
}

/// How long the Secret can stay as it is; nothing where it cannot.
fn stays(
    have: &Secret,
    account: &str,
    (reached, authorities): (&Reached, Option<&[u8]>),
    now: Timestamp,
) -> Option<Duration> {
    is_of(have, Some(account)).then_some(())?;
    let renew_at: Timestamp = have.annotations().get(label::RENEW_AT)?.parse().ok()?;
    let kubeconfig: Value = serde_json::from_slice(&have.data.as_ref()?.get(KUBECONFIG)?.0).ok()?;
    (kubeconfig["clusters"][0]["cluster"] == cluster(reached, authorities)).then_some(())?;
    Duration::try_from(renew_at.duration_since(now)).ok().filter(|left| !left.is_zero())
}

fn cluster(reached: &Reached, authorities: Option<&[u8]>) -> Value {
    let mut cluster = json!({"server": reached.address});
    if let Some(authorities) = authorities {
        cluster["certificate-authority-data"] = json!(ByteString(authorities.to_vec()));
    }
    if let Some(name) = &reached.server_name {
        cluster["tls-server-name"] = json!(name);
    }
    cluster
}

/// JSON is YAML.
fn kubeconfig(contract: &str, reached: &Reached, authorities: Option<&[u8]>, token: &str) -> Value {
    let name = "default";
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": cluster(reached, authorities)}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": contract}}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(address: &str) -> Reached {
        Reached {
            address: address.into(),
            server_name: None,
            authorities: None,
            pretty_name: "Freeport".into(),
            lifetime: Duration::from_secs(3600),
        }
    }

    #[test]
    fn a_token_is_renewed_when_half_of_its_life_is_over() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(renews_in(at(1000), at(4600)), Duration::from_secs(1800));
        assert_eq!(renews_in(at(1000), at(900)), RENEW_EVERY, "our clock is ahead");
    }

    #[test]
    fn a_provider_that_is_called_otherwise_says_so_to_consumers_that_it_has() {
        let binding = json!({"metadata": {"name": "cluster"},
            "spec": {"kubeconfigSecretRef": {"name": "k", "key": "k"}, "providerPrettyName": "Old"}});
        let binding: ClusterBinding = serde_json::from_value(binding).unwrap();
        assert_eq!(called(&binding, "Old"), None);
        assert_eq!(called(&binding, "New"), Some(json!({"spec": {"providerPrettyName": "New"}})));
    }

    #[test]
    fn a_credential_stays_until_half_of_its_life_is_over_or_it_leads_elsewhere() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (there, elsewhere) = (reached("https://l:6443"), reached("https://m"));
        let kubeconfig = kubeconfig("cns", &there, Some(b"ca"), "t").to_string();
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"annotations": {label::RENEW_AT: at(1000).to_string(), label::ACCOUNT_UID: "a"}},
            "data": {KUBECONFIG: ByteString(kubeconfig.into_bytes())},
        }))
        .unwrap();
        let stays = |account, reached, authorities: &[u8], second| {
            stays(&secret, account, (reached, Some(authorities)), at(second))
        };
        assert_eq!(stays("a", &there, b"ca", 900), Some(Duration::from_secs(100)));
        assert_eq!(stays("a", &there, b"ca", 1000), None);
        assert_eq!(stays("a", &there, b"other", 900), None);
        assert_eq!(stays("a", &elsewhere, b"ca", 900), None);
        assert_eq!(stays("b", &there, b"ca", 900), None);
        assert!(is_of(&secret, Some("a")) && !is_of(&secret, None), "its account was deleted");
    }
}
