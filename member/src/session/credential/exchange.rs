//! Gets another credential, proves it by a request on a connection of its own, and writes it over the one that it replaces alone.

use std::time::Duration;

use api::{
    name::ROOT_CA,
    token::{Account, Claims, Life},
};
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{SelfSubjectReview, TokenRequest, TokenRequestSpec},
        core::v1::{ConfigMap, Secret, ServiceAccount},
    },
};
use kit::{
    client::{CA, TOKEN},
    failure::{Failure, classify},
    write::{self, Writer},
};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use serde_json::json;
use tokio::time::timeout;

use super::authorities::candidates;
use crate::{feature::Access, identity::Target};

/// For one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no other credential.
pub(super) enum Hindrance {
    /// Somebody else has put another one into the Secret.
    Changed,
    /// It stays refused until somebody changes something.
    Refused(String),
    /// Something that may be over soon.
    Failed(String),
}

impl From<Failure> for Hindrance {
    fn from(failure: Failure) -> Self {
        let why = failure.to_string();
        if failure.is_refusal() { Self::Refused(why) } else { Self::Failed(why) }
    }
}

impl From<write::Error> for Hindrance {
    fn from(error: write::Error) -> Self {
        match error {
            write::Error::Stale | write::Error::Gone => Self::Changed,
            write::Error::Refused(why) => Self::Refused(format!("this cluster's API server says: {why}")),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A credential that was proven, and what it may be written over.
pub(super) struct Proven {
    secret: Secret,
    target: Target,
}

impl Proven {
    /// Its token.
    pub(super) fn token(&self) -> Option<&str> {
        self.target.token()
    }
}

/// Both API servers.
pub(super) struct Exchange {
    pub(super) access: Access,
    /// To this cluster's.
    pub(super) writer: Writer,
    /// What a token is asked to count. API servers may grant less.
    pub(super) life: Duration,
}

impl Exchange {
    /// Gets another token of our account; it, and when it counts.
    pub(super) async fn token(
        &self,
        target: &Target,
        account: &Account,
    ) -> Result<(Proven, Life), Hindrance> {
        let secret = self.unchanged(target).await?;
        let accounts = Api::<ServiceAccount>::namespaced(self.access.leader.clone(), &account.namespace);
        let seconds = i64::try_from(self.life.as_secs()).unwrap_or(i64::MAX);
        let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let how = PostParams::default();
        let granted = answered(accounts.create_token_request(&account.name, &how, &request)).await?;
        let token = granted.status.and_then(|status| status.token).unwrap_or_default();
        let life = Claims::of(&token).and_then(|claims| claims.life);
        let life = life.ok_or_else(|| {
            Hindrance::Refused("the leader granted no token that says until when it counts".into())
        })?;
        let mut data = target.secret_data().clone();
        data.insert(TOKEN.to_owned(), ByteString(token.into_bytes()));
        let target = target.with_credential(data);
        self.prove(&target, account).await?;
        Ok((Proven { secret, target }, life))
    }

    /// The authorities that are to be trusted now; none where they stay.
    pub(super) async fn authorities(
        &self,
        target: &Target,
        account: &Account,
    ) -> Result<Option<Proven>, Hindrance> {
        let maps = Api::<ConfigMap>::namespaced(self.access.leader.clone(), &target.us.common_area);
        let named = answered(maps.get_opt(ROOT_CA)).await?.and_then(|map| map.data?.remove(CA));
        let candidates = named.map(|named| candidates(target.secret_data(), &named)).unwrap_or_default();
        if candidates.is_empty() {
            return Ok(None);
        }
        let secret = self.unchanged(target).await?;
        let mut unproven = None;
        for candidate in candidates {
            let target = target.with_credential(candidate);
            match self.prove(&target, account).await {
                Ok(()) => return Ok(Some(Proven { secret, target })),
                Err(failure) => unproven = Some(failure),
            }
        }
        match unproven {
            // The API server's certificate is of one that its cluster does not name any more. That takes as long as it takes.
            Some(Failure::Untrusted(why)) => Err(Hindrance::Refused(why)),
            Some(failure) => Err(failure.into()),
            None => Ok(None),
        }
    }

    /// Writes it.
    pub(super) async fn write(&self, Proven { secret, target }: &Proven) -> Result<(), Hindrance> {
        let version = secret.resource_version();
        let patch = json!({"metadata": {"resourceVersion": version}, "data": target.secret_data()});
        self.writer.merge(secret, None, patch).await?;
        Ok(())
    }

    /// The Secret, if it still has the credential of `target`.
    async fn unchanged(&self, target: &Target) -> Result<Secret, Hindrance> {
        let metadata = ObjectMeta {
            name: Some(target.secret.clone()),
            namespace: Some(self.access.env.namespace.clone()),
            ..ObjectMeta::default()
        };
        let secret = self.writer.read(&Secret { metadata, ..Secret::default() }).await?;
        match secret.data.as_ref() == Some(target.secret_data()) {
            true => Ok(secret),
            false => Err(Hindrance::Changed),
        }
    }

    /// Asks the leader's API server who we are, on a connection of its own.
    async fn prove(&self, target: &Target, account: &Account) -> Result<(), Failure> {
        let client =
            target.client(&self.access.env.dial).map_err(|error| Failure::Other(error.to_string()))?;
        let reviews = Api::<SelfSubjectReview>::all(self.access.env.hold.guard(client));
        let review = answered(reviews.create(&PostParams::default(), &SelfSubjectReview::default())).await?;
        let user = review.status.and_then(|status| status.user_info?.username);
        match user == Some(account.user()) {
            true => Ok(()),
            false => Err(Failure::Other("the leader does not take us for who we are".into())),
        }
    }
}

/// The answer, if it comes in time.
async fn answered<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| classify(&error)),
        Err(_) => Err(Failure::Unreachable("no answer in time")),
    }
}
