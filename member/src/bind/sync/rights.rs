//! What we may do here with the objects of an API. Whoever agreed to it can take that back, and no event says so: a watch that is open goes
//! on for minutes, and what is in step is not written. So our API server is asked, now and then and whenever it refuses something.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kit::watch::Watches;
use kube::{Api, api::PostParams};

use super::{Bound, Sync, copies::LOOK, unsynced::Halt};

/// How often it is asked where nothing was refused.
const EVERY: Duration = Duration::from_secs(60);
/// What keeping objects in step takes, beside writing their statuses.
const VERBS: &[&str] = &["get", "list", "watch", "patch", "delete"];

impl Sync {
    /// Says what is not granted, again and again.
    pub(super) async fn say_rights(self, watches: Watches) {
        let mut failures = watches.failures();
        loop {
            failures.mark_unchanged();
            let mut pause = LOOK;
            // Where it does not answer, what was said may still be so.
            if let Ok(missing) = self.missing().await {
                if missing.is_empty() {
                    pause = EVERY;
                }
                let said = said(self.name(), &missing);
                self.unsynced.put_halt(self.name(), Halt::NotPermitted, said.as_deref());
            }
            tokio::time::sleep(LOOK).await;
            tokio::select! {
                () = tokio::time::sleep(pause - LOOK) => {}
                () = self.doubts.notified() => {}
                Ok(()) = failures.changed() => {}
            }
        }
    }

    async fn missing(&self) -> kube::Result<Vec<String>> {
        let reviews = Api::<SelfSubjectAccessReview>::all(self.contract.env.client.clone());
        let mut missing = Vec::new();
        for asked in needed(&self.bound) {
            let what = called(&asked);
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes: Some(asked),
                non_resource_attributes: None,
            };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            let answer = reviews.create(&PostParams::default(), &review).await?;
            if answer.status.is_some_and(|status| !status.allowed) {
                missing.push(what);
            }
        }
        Ok(missing)
    }
}

/// What has to be granted for an API, in all Namespaces.
fn needed(bound: &Bound) -> Vec<ResourceAttributes> {
    let status = bound.has_status.then(|| "status".to_owned());
    let all = VERBS.iter().map(|verb| (*verb, None)).chain([("update", status)]);
    let attributes = |(verb, subresource): (&str, Option<String>)| ResourceAttributes {
        group: Some(bound.resource.group.clone()),
        resource: Some(bound.resource.plural.clone()),
        verb: Some(verb.to_owned()),
        subresource,
        ..ResourceAttributes::default()
    };
    all.map(attributes).collect()
}

fn called(asked: &ResourceAttributes) -> String {
    let verb = asked.verb.clone().unwrap_or_default();
    match &asked.subresource {
        Some(part) => format!("{verb} {part}"),
        None => verb,
    }
}

fn said((binding, api): (&str, &str), missing: &[String]) -> Option<String> {
    (!missing.is_empty()).then(|| {
        format!(
            "in this cluster freeport-member may not {} {api}: `freeport bind apiservice {binding} --template TEMPLATE --provider-context PROVIDER`, or \
             with `-f FILE`, gives it the rights, and `freeport bind remove {binding} --force` ends the binding",
            missing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::fixture;

    #[test]
    fn what_is_asked_for_is_what_keeping_in_step_takes() {
        let of = |has_status| {
            let all = needed(&Bound { has_status, ..fixture::bound() });
            assert!(all.iter().all(|one| one.namespace.is_none()), "in all Namespaces");
            all.iter().map(called).collect::<Vec<_>>().join(",")
        };
        assert_eq!(of(true), "get,list,watch,patch,delete,update status");
        assert_eq!(of(false), "get,list,watch,patch,delete,update");
        let named = needed(&fixture::bound());
        let named = (named[0].group.as_deref(), named[0].resource.as_deref());
        assert_eq!(named, (Some("provider.example.com"), Some("mangodbs")));
    }

    #[test]
    fn what_is_missing_is_said_and_how_to_give_it() {
        let name = ("mango", "mangodbs.example.com");
        assert_eq!(said(name, &[]), None);
        let said = said(name, &["watch".into(), "update status".into()]).unwrap();
        assert!(said.contains("may not watch, update status mangodbs.example.com"), "{said}");
        assert!(said.contains("freeport bind apiservice mango "), "{said}");
    }
}
