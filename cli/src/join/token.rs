//! The token that authenticates a member at the leader's API server until the member asks for its next one, and the authorities of that
//! server. A token that a member has already is kept as long as it is good, and its authorities with it.

use std::time::Duration;

use api::{
    name::ROOT_CA,
    token::{Claims, Life},
    view::Meta,
};
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec, TokenReview, TokenReviewSpec},
        core::v1::{ConfigMap, Secret, ServiceAccount},
    },
    jiff::Timestamp,
};
use kit::{
    certificate::certificates,
    client::{CA, NAMED_CA, TOKEN},
};
use kube::{Api, ResourceExt, api::PostParams};

use crate::{
    Error,
    cluster::Cluster,
    eraser::{Eraser, called},
    error::Failure,
    install::Installer,
    objects::{
        SYSTEM, access, area,
        member::{self, Credential},
    },
};

/// What a token is asked to count: a member that runs replaces it at half of that.
const LIFE: Duration = Duration::from_secs(24 * 3600);

impl Installer<'_> {
    /// A credential of member `id` that the leader's API server accepts: what the member's cluster `has`, as far as it is good. `ca`: the
    /// authorities, where Kubernetes is not asked for them.
    pub(super) async fn credential(
        &mut self,
        (set, id): (&str, &str),
        ca: Option<&[u8]>,
        has: &Credential,
    ) -> Result<Credential, Error> {
        let ca = match ca {
            Some(ca) => ca.to_vec(),
            None => self.authorities(set).await?,
        };
        let account = self.account(set, id).await?;
        if is_good(self.cluster, &has.token, &account).await? {
            // A member adds those that the leader's cluster gets.
            let ca = if trusts(&has.ca, &ca) { has.ca.clone() } else { ca };
            return Ok(Credential { ca, ..has.clone() });
        }
        let (area, name) = (area::name(set), account.name_any());
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client.clone(), &area);
        let seconds = i64::try_from(LIFE.as_secs()).unwrap_or(i64::MAX);
        let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let how = PostParams::default();
        let doing = format!("get a token of ServiceAccount {area}/{name}");
        let granted =
            self.cluster.request(doing, accounts.create_token_request(&name, &how, &request)).await?;
        let token = granted.status.and_then(|status| status.token).ok_or_else(|| {
            self.cluster.refuse(format!("the API server granted no token of ServiceAccount {area}/{name}"))
        })?;
        let published = match published(self.cluster, set).await {
            // The member notes it then.
            Err(error) if matches!(error.failure(), Failure::Forbidden(_)) => None,
            published => published?,
        };
        let named = noted(&ca, published).or_else(|| has.named.clone());
        Ok(Credential { ca, named, token: token.into_bytes() })
    }

    /// Deletes the token that counts for ever, which a member has from an earlier version: it has another one now.
    pub(crate) async fn retire_token(&mut self, leader: &Cluster, set: &str, id: &str) -> Result<(), Error> {
        let secret = called::<Secret>(&area::name(set), &access::token_secret(id));
        let mut say = |line: &str| self.say_plainly(line);
        Eraser::new(leader, false, &mut say).delete_ours(&secret).await
    }

    /// The member's ServiceAccount.
    async fn account(&self, set: &str, id: &str) -> Result<Meta<ServiceAccount>, Error> {
        let (area, name) = (area::name(set), access::account(id));
        let look = async |leader: &Cluster| {
            let accounts: Api<Meta<ServiceAccount>> = Api::namespaced(leader.client.clone(), &area);
            leader.request(format!("read ServiceAccount {area}/{name}"), accounts.get_opt(&name)).await
        };
        self.until(&format!("there is no ServiceAccount {area}/{name}"), look).await
    }

    /// Those of the leader's cluster.
    async fn authorities(&self, set: &str) -> Result<Vec<u8>, Error> {
        let missing = format!(
            "no authorities in ConfigMap {}/{ROOT_CA} (kube-controller-manager writes it: does it run there?)",
            area::name(set)
        );
        self.until(&missing, async |leader: &Cluster| published(leader, set).await).await
    }
}

/// The authorities that the leader's cluster publishes, PEM, if it has done so yet.
async fn published(leader: &Cluster, set: &str) -> Result<Option<Vec<u8>>, Error> {
    let area = area::name(set);
    let maps: Api<ConfigMap> = Api::namespaced(leader.client.clone(), &area);
    let map = leader.request(format!("read ConfigMap {area}/{ROOT_CA}"), maps.get_opt(ROOT_CA)).await?;
    Ok(map.and_then(|map| map.data?.remove(CA)).map(String::into_bytes))
}

/// What a member's cluster has of a credential for the leader of this set.
pub(super) async fn had(member: &Cluster, set: &str) -> Result<Credential, Error> {
    let (secrets, name) =
        (Api::<Secret>::namespaced(member.client.clone(), SYSTEM), member::secret_name(set));
    let secret = member.request(format!("read Secret {SYSTEM}/{name}"), secrets.get_opt(&name)).await?;
    let mut data = secret.and_then(|secret| secret.data).unwrap_or_default();
    let mut part = |key: &str| data.remove(key).map(|ByteString(bytes)| bytes);
    let (ca, named, token) = (part(CA), part(NAMED_CA), part(TOKEN));
    Ok(Credential { ca: ca.unwrap_or_default(), named, token: token.unwrap_or_default() })
}

/// What is to be noted of what the leader's cluster publishes beside these authorities: all of them, if it publishes just them. Of others the
/// member proves first that they can be trusted.
fn noted(ca: &[u8], published: Option<Vec<u8>>) -> Option<Vec<u8>> {
    published.filter(|published| published == ca)
}

/// Whether who trusts these authorities trusts the others, too.
fn trusts(authorities: &[u8], others: &[u8]) -> bool {
    match (certificates(authorities), certificates(others)) {
        (Ok(all), Ok(others)) => others.iter().all(|one| all.contains(one)),
        _ => false,
    }
}

/// Whether the leader's API server takes the token for one of this very account, and it counts for a while yet. Who may not ask that gets
/// another token.
async fn is_good(leader: &Cluster, token: &[u8], account: &Meta<ServiceAccount>) -> Result<bool, Error> {
    let token = String::from_utf8_lossy(token).trim().to_owned();
    let life = Claims::of(&token).filter(|claims| claims.uid == account.uid()).and_then(|claims| claims.life);
    if !life.is_some_and(|life| counts_for_a_while(&life, Timestamp::now())) {
        return Ok(false);
    }
    let spec = TokenReviewSpec { token, ..TokenReviewSpec::default() };
    let (reviews, review) =
        (Api::<TokenReview>::all(leader.client.clone()), TokenReview { spec, ..TokenReview::default() });
    let how = PostParams::default();
    let asked = reviews.create(&how, &review);
    match leader.request("ask whether the member's token is good", asked).await {
        Ok(review) => Ok(review.status.is_some_and(|status| status.authenticated == Some(true))),
        Err(error) if matches!(error.failure(), Failure::Forbidden(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a member that runs would not have let it get so old: a quarter of its life is left.
fn counts_for_a_while(life: &Life, now: Timestamp) -> bool {
    let span = life.expires.duration_since(life.issued);
    life.expires.duration_since(now) > span / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_while_a_quarter_of_its_life_is_left() {
        let at = |hour: i64| Timestamp::from_second(1_800_000_000 + hour * 3600).unwrap();
        let life = Life { issued: at(0), expires: at(24) };
        assert!(counts_for_a_while(&life, at(0)) && counts_for_a_while(&life, at(17)));
        assert!(!counts_for_a_while(&life, at(18)) && !counts_for_a_while(&life, at(30)));
    }

    #[test]
    fn authorities_are_noted_if_the_leaders_cluster_publishes_just_them() {
        assert_eq!(noted(b"ours", Some(b"ours".to_vec())), Some(b"ours".to_vec()));
        assert_eq!(noted(b"a load balancer's", Some(b"ours".to_vec())), None);
        assert_eq!(noted(b"ours", None), None, "nothing is published yet");
    }

    #[test]
    fn authorities_stay_as_long_as_those_that_are_wanted_are_among_them() {
        let pem =
            |content: &str| format!("-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n");
        let trusts = |authorities: &str, others: &str| trusts(authorities.as_bytes(), others.as_bytes());
        let (one, two) = (pem("AAAA"), pem("BBBB"));
        assert!(trusts(&one, &one) && trusts(&format!("{two}{one}"), &one));
        assert!(!trusts(&one, &two) && !trusts("", &one) && !trusts("none", "none"));
    }
}
