//! What CoreDNS may read, and what it has to be granted.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{Api, api::PostParams};

use super::Namespaced;
use crate::{
    Error,
    cluster::Cluster,
    objects::{Object, dns},
};

/// Group and plural of what it makes names of.
const IMPORTS: (&str, &str) = ("multicluster.x-k8s.io", "serviceimports");
/// What every CoreDNS of a cluster may read, without which it answers for nothing.
const STOCK: [(&str, &str); 3] =
    [("", "namespaces"), ("", "services"), ("discovery.k8s.io", "endpointslices")];

/// What CoreDNS, which is this ServiceAccount, lacks.
pub(super) struct Lacking {
    /// To be applied.
    pub(super) objects: Vec<Object>,
    /// What it should have had before.
    pub(super) stock: Vec<&'static str>,
}

pub(super) async fn lacking(cluster: &Cluster, account: &Namespaced) -> Result<Lacking, Error> {
    let wanted = dns::objects(&account.namespace, &account.name);
    let found = [cluster.read(&wanted[0]).await?, cluster.read(&wanted[1]).await?];
    let may = may_watch(cluster, account, IMPORTS).await?;
    let objects = to_apply(&wanted, &found, may).map_err(|foreign| {
        cluster.refuse(format!(
            "{foreign} is there and not Freeport's, yet ServiceAccount {account} may not list and watch ServiceImports: give it \
             that right, or delete {foreign} if nobody else needs it"
        ))
    })?;
    let mut stock = Vec::new();
    for (group, plural) in STOCK {
        if !may_watch(cluster, account, (group, plural)).await? {
            stock.push(plural);
        }
    }
    Ok(Lacking { objects, stock })
}

/// What differs of ours; nothing if others have seen to it. An object that somebody else made is in the way, if they have not.
fn to_apply<'a>(
    wanted: &'a [Object; 2],
    found: &[Option<Object>; 2],
    may: bool,
) -> Result<Vec<Object>, &'a Object> {
    if may && !found.iter().flatten().any(Object::is_ours) {
        return Ok(vec![]);
    }
    let mut objects = Vec::new();
    for (wanted, found) in wanted.iter().zip(found) {
        match found {
            Some(found) if !found.is_ours() && may => {}
            Some(found) if !found.is_ours() => return Err(wanted),
            Some(found) if says_the_same(wanted, found) => {}
            _ => objects.push(wanted.clone()),
        }
    }
    Ok(objects)
}

fn says_the_same(wanted: &Object, found: &Object) -> bool {
    ["rules", "roleRef", "subjects"].iter().all(|part| wanted.body.get(part) == found.body.get(part))
}

async fn may_watch(
    cluster: &Cluster,
    account: &Namespaced,
    (group, plural): (&str, &str),
) -> Result<bool, Error> {
    let reviews: Api<SubjectAccessReview> = Api::all(cluster.client.clone());
    for verb in ["list", "watch"] {
        let review = review(account, group, plural, verb);
        let doing = format!("ask what ServiceAccount {account} may do");
        let answer = cluster.request(doing, reviews.create(&PostParams::default(), &review)).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn review(account: &Namespaced, group: &str, plural: &str, verb: &str) -> SubjectAccessReview {
    let Namespaced { namespace, name } = account;
    let groups =
        ["serviceaccounts".to_owned(), format!("serviceaccounts:{namespace}"), "authenticated".into()];
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{namespace}:{name}")),
            groups: Some(groups.map(|group| format!("system:{group}")).into()),
            resource_attributes: Some(ResourceAttributes {
                group: Some(group.into()),
                resource: Some(plural.into()),
                verb: Some(verb.into()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn wanted() -> [Object; 2] {
        dns::objects("kube-system", "coredns")
    }

    fn foreign(mut object: Object) -> Object {
        object.body["metadata"]["labels"] = Value::Null;
        object
    }

    #[test]
    fn what_is_missing_or_differs_is_applied() {
        let wanted = wanted();
        let [role, binding] = wanted.clone();
        assert_eq!(to_apply(&wanted, &[None, None], false), Ok(wanted.clone().into()));
        assert_eq!(to_apply(&wanted, &[Some(role.clone()), None], false), Ok(vec![binding.clone()]));
        let mut changed = binding.clone();
        changed.body["subjects"] = Value::Null;
        let found = [Some(role.clone()), Some(changed)];
        assert_eq!(to_apply(&wanted, &found, false), Ok(vec![binding.clone()]));
        assert_eq!(to_apply(&wanted, &[Some(role), Some(binding)], true), Ok(vec![]));
    }

    #[test]
    fn a_second_coredns_takes_nothing_from_the_first() {
        let names = |objects: [Object; 2]| objects.map(|object| object.to_string());
        let (first, second) = (names(wanted()), names(dns::objects("edge", "coredns")));
        assert!(first.iter().all(|name| !second.contains(name)), "{first:?} {second:?}");
    }

    #[test]
    fn what_others_grant_is_theirs() {
        let wanted = wanted();
        let [role, binding] = wanted.clone();
        assert_eq!(to_apply(&wanted, &[None, None], true), Ok(vec![]));
        let theirs = [Some(foreign(role.clone())), Some(foreign(binding.clone()))];
        assert_eq!(to_apply(&wanted, &theirs, true), Ok(vec![]));
        assert_eq!(to_apply(&wanted, &theirs, false), Err(&wanted[0]));
        let half = [Some(role), Some(foreign(binding))];
        assert_eq!(to_apply(&wanted, &half, false), Err(&wanted[1]));
        assert_eq!(to_apply(&wanted, &half, true), Ok(vec![]));
    }

    #[test]
    fn it_is_asked_for_as_whom_coredns_asks() {
        let account = Namespaced { namespace: "kube-system".into(), name: "coredns".into() };
        let spec = review(&account, "g", "things", "watch").spec;
        assert_eq!(spec.user.unwrap(), "system:serviceaccount:kube-system:coredns");
        assert!(spec.groups.unwrap().contains(&"system:serviceaccounts:kube-system".to_owned()));
    }
}
