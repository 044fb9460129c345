//! Asking the API server what an account may: every verb on every resource that discovery names, in several places; and the rules
//! that the account has, for the names in them and for verbs that nobody thought of.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use kube::{Api, Client, api::PostParams};

/// Questions under way at once.
const AT_ONCE: usize = 32;
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/// What discovery does not name: group, resource, verb.
const UNNAMED: [(&str, &str, &str); 12] = [
    ("", "users", "impersonate"),
    ("", "groups", "impersonate"),
    ("", "serviceaccounts", "impersonate"),
    ("authentication.k8s.io", "uids", "impersonate"),
    ("authentication.k8s.io", "userextras", "impersonate"),
    ("rbac.authorization.k8s.io", "roles", "escalate"),
    ("rbac.authorization.k8s.io", "clusterroles", "bind"),
    ("certificates.k8s.io", "signers", "approve"),
    ("certificates.k8s.io", "signers", "sign"),
    ("multicluster.crd.antrea.io", "resourceexports", "act-as"),
    ("multicluster.crd.antrea.io", "resourceexports", "speak-antrea"),
    ("*", "*", "*"),
];

/// A Namespace, and what the docs call it.
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) namespace: &'static str,
}

/// What is asked about an account.
pub(super) struct Asked<'a> {
    /// Name of an account without any rights, to tell what every account may.
    pub(super) nobody: &'static str,
    pub(super) places: &'a [Place],
    /// Names of objects that are its own.
    pub(super) own_names: &'a [&'static str],
}

/// A verb on a resource that is allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Allowed {
    pub(super) place: String,
    pub(super) resource: String,
    pub(super) verb: String,
    /// Whose objects, where the right has names.
    pub(super) names: Option<String>,
}

/// What passes for `us` and not for `nobody`.
pub(super) async fn allowed(us: &Client, nobody: &Client, asked: &Asked<'_>) -> BTreeSet<Allowed> {
    let questions = questions(us).await;
    assert!(questions.len() > 500, "only {} questions", questions.len());
    let everywhere = granted(us, "", &questions).await;
    let of_everybody = granted(nobody, "", &everywhere).await;
    let mut found = BTreeSet::new();
    let mut note = |place: &str, (_, resource, verb): &Question| {
        found.insert(Allowed {
            place: place.to_owned(),
            resource: resource.clone(),
            verb: verb.clone(),
            names: None,
        });
    };
    everywhere.difference(&of_everybody).for_each(|question| note("everywhere", question));
    let rest = &questions - &everywhere;
    for place in asked.places {
        granted(us, place.namespace, &rest).await.iter().for_each(|question| note(place.name, question));
    }
    for place in asked.places {
        let (ours, of_all) = (rules(us, place.namespace).await, rules(nobody, place.namespace).await);
        for rule in ours.iter().filter(|rule| !of_all.contains(rule)) {
            take_rule(&mut found, place, rule, asked.own_names);
        }
    }
    at_once(&found, asked.places)
}

/// What is allowed in every place that was asked about is allowed everywhere.
fn at_once(found: &BTreeSet<Allowed>, places: &[Place]) -> BTreeSet<Allowed> {
    let at = |allowed: &Allowed, place: &str| Allowed { place: place.to_owned(), ..allowed.clone() };
    let is_everywhere = |one: &Allowed| places.iter().all(|place| found.contains(&at(one, place.name)));
    found.iter().map(|one| if is_everywhere(one) { at(one, "everywhere") } else { one.clone() }).collect()
}

/// Group, resource with its subresource, and verb.
type Question = (String, String, String);

async fn questions(client: &Client) -> BTreeSet<Question> {
    let groups = client.list_api_groups().await.unwrap().groups;
    let versions = groups.iter().flat_map(|group| group.versions.iter().map(|v| v.group_version.clone()));
    let mut lists = vec![client.list_core_api_resources("v1").await.unwrap()];
    for version in versions {
        lists.push(client.list_api_group_resources(&version).await.unwrap());
    }
    let mut questions: BTreeSet<Question> =
        UNNAMED.map(|(group, resource, verb)| (group.into(), resource.into(), verb.into())).into();
    for list in lists {
        let group = list.group_version.split_once('/').map(|(group, _)| group).unwrap_or_default();
        for resource in list.resources {
            let verbs = VERBS.iter().copied().chain(resource.verbs.iter().map(String::as_str));
            questions.extend(verbs.map(|verb| (group.to_owned(), resource.name.clone(), verb.to_owned())));
        }
    }
    questions
}

async fn granted(client: &Client, namespace: &str, questions: &BTreeSet<Question>) -> BTreeSet<Question> {
    let answers = stream::iter(questions).map(|question| may(client, namespace, question));
    answers.buffer_unordered(AT_ONCE).filter_map(async |granted| granted).collect().await
}

async fn may(client: &Client, namespace: &str, question: &Question) -> Option<Question> {
    let (group, resource, verb) = question.clone();
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, sub)) => (resource.to_owned(), Some(sub.to_owned())),
        None => (resource, None),
    };
    let attributes = ResourceAttributes {
        group: Some(group),
        resource: Some(resource),
        subresource,
        verb: Some(verb),
        namespace: Some(namespace.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec =
        SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
    answer.allowed.then(|| question.clone())
}

async fn rules(client: &Client, namespace: &str) -> Vec<ResourceRule> {
    let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) };
    let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let reviews = Api::<SelfSubjectRulesReview>::all(client.clone());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().resource_rules
}

/// Adds what a rule with names grants. What one without names grants has to be there already.
fn take_rule(found: &mut BTreeSet<Allowed>, place: &Place, rule: &ResourceRule, own: &[&str]) {
    let has = |found: &BTreeSet<Allowed>, place: &str, resource: &str, verb: &str| {
        found.iter().any(|known| {
            known.place == place && known.resource == resource && known.verb == verb && known.names.is_none()
        })
    };
    let names = rule.resource_names.as_deref().unwrap_or_default();
    for resource in rule.resources.iter().flatten() {
        for verb in &rule.verbs {
            let is_known = has(found, place.name, resource, verb) || has(found, "everywhere", resource, verb);
            if names.is_empty() {
                assert!(is_known, "a rule that no question was about: {rule:?}");
            } else if !is_known {
                let is_own = names.iter().all(|name| own.contains(&name.as_str()));
                let names = if is_own { super::OWN.to_owned() } else { names.join(", ") };
                found.insert(Allowed {
                    place: place.name.to_owned(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    names: Some(names),
                });
            }
        }
    }
}
