//! The token that authenticates a member at the leader's API server. Kubernetes writes it into a Secret.

use std::time::{Duration, Instant};

use k8s_openapi::{
    ByteString,
    api::core::v1::{Secret, ServiceAccount},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};

use crate::{
    Error, Part,
    cluster::Cluster,
    error::{Failure, classify},
    install::Installer,
    objects::{access, area, member::Credential},
};

/// Time for kube-controller-manager to notice a deletion.
const PAUSE: Duration = Duration::from_secs(1);

impl Installer<'_> {
    /// Waits for a token of member `id` that the leader's API server accepts.
    ///
    /// Just after an earlier ServiceAccount of that name was deleted, kube-controller-manager may still write a token of that
    /// one, and never corrects it. So the Secret is recreated until its token is of the ServiceAccount that exists.
    pub(super) async fn token(&mut self, set: &str, id: &str) -> Result<Credential, Error> {
        let (area, name) = (area::name(set), access::token_secret(id));
        let missing = format!(
            "no token in Secret {area}/{name} (kube-controller-manager writes it: does it run there?)"
        );
        let mut objects = access::objects(set, id, None);
        objects.retain(|object| object.name == name);
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), &area);
        let may_write = self.run.does(Part::Leader);
        let (begun, mut told) = (Instant::now(), false);
        loop {
            let look = async |leader: &Cluster| {
                let token = look(leader, &area, id).await?;
                Ok(token.filter(|token| may_write || matches!(token, Token::Written(_))))
            };
            match self.until(&missing, look).await? {
                Token::Written(credential) => return Ok(credential),
                _ if begun.elapsed() >= self.run.timeout => {
                    let (cluster, limit) = (self.cluster.name.clone(), self.run.timeout);
                    return Err(Error::Timeout { cluster, missing, limit });
                }
                Token::OfAnother { uid } => {
                    let only =
                        DeleteParams::default().preconditions(Preconditions { uid, resource_version: None });
                    let delete = async {
                        match secrets.delete(&name, &only).await {
                            // Somebody else deleted it first.
                            Err(error)
                                if matches!(classify(&error), Failure::Missing | Failure::Conflict) =>
                            {
                                Ok(())
                            }
                            done => done.map(drop),
                        }
                    };
                    self.cluster.request(format!("delete Secret {area}/{name}"), delete).await?;
                    if !told {
                        self.say(&format!(
                            "recreating Secret {area}/{name}: its token is of a ServiceAccount that was deleted"
                        ));
                        told = true;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Token::Missing => {
                    for secret in &objects {
                        self.apply(secret).await?;
                    }
                }
            }
        }
    }
}

async fn look(leader: &Cluster, area: &str, id: &str) -> Result<Option<Token>, Error> {
    let (account, name) = (access::account(id), access::token_secret(id));
    let accounts: Api<ServiceAccount> = Api::namespaced(leader.client.clone(), area);
    let doing = format!("read ServiceAccount {area}/{account}");
    let account = leader.request(doing, accounts.get_metadata_opt(&account)).await?;
    let secrets: Api<Secret> = Api::namespaced(leader.client.clone(), area);
    let secret = leader.request(format!("read Secret {area}/{name}"), secrets.get_opt(&name)).await?;
    let uid = account.and_then(|account| account.metadata.uid);
    Ok(uid.and_then(|uid| token(&uid, secret)))
}

/// State of a token Secret.
#[derive(PartialEq)]
enum Token {
    Written(Credential),
    /// Its token is of an earlier ServiceAccount of that name. With the Secret's own uid.
    OfAnother {
        uid: Option<String>,
    },
    /// There is no Secret.
    Missing,
}

/// State of the token Secret of the ServiceAccount with this uid; none while Kubernetes has not written the token.
fn token(account: &str, secret: Option<Secret>) -> Option<Token> {
    const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
    let Some(secret) = secret else {
        return Some(Token::Missing);
    };
    if secret.annotations().get(ACCOUNT_UID)? != account {
        return Some(Token::OfAnother { uid: secret.metadata.uid });
    }
    let mut data = secret.data?;
    let ByteString(ca) = data.remove("ca.crt")?;
    let ByteString(token) = data.remove("token")?;
    Some(Token::Written(Credential { ca, token }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_token_of_the_service_account_that_exists_is_accepted() {
        let secret = |annotations: serde_json::Value, data: serde_json::Value| {
            let metadata = json!({"uid": "s1", "annotations": annotations});
            Some(serde_json::from_value(json!({"metadata": metadata, "data": data})).unwrap())
        };
        let of = |account: &str| json!({"kubernetes.io/service-account.uid": account});
        let data = || json!({"ca.crt": "Y2E=", "token": "dG9rZW4="});
        let credential = Credential { ca: b"ca".into(), token: b"token".into() };
        // Compared without printing it: it is a credential.
        assert!(token("new", secret(of("new"), data())) == Some(Token::Written(credential)));
        let another = Token::OfAnother { uid: Some("s1".into()) };
        assert!(token("new", secret(of("old"), data())) == Some(another));
        assert!(token("new", secret(json!({}), json!({}))).is_none());
        assert!(token("new", secret(of("new"), json!({"token": "dG9rZW4="}))).is_none());
        assert!(token("new", None) == Some(Token::Missing));
    }
}
