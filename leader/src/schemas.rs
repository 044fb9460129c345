//! CRDs of the records. An object is told as its CRD was when it was told; when a CRD that had lost a field is put right, the records
//! that have the field read differently, and no watch tells of that. So whoever watches records reads them again then: this daemon,
//! and the members, which may not read CRDs, at the word of our Lease.

use std::{collections::BTreeMap, sync::Arc};

use api::crd::{self, Installed, Version};
use kit::{
    boot::Env,
    index::Shared,
    objects::Change,
    watch::{IN_FORCE, Source, Watches},
};
use kube::{Api, ResourceExt, runtime::watcher};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

/// What the Lease says of them; none while it is not known of all.
pub(crate) type Said = Option<String>;

/// Watches the CRDs. Nothing waits for the lists: without the right to read CRDs nothing is said.
pub(crate) fn watch(env: &Env, tasks: &mut JoinSet<()>) -> watch::Receiver<Said> {
    let (schemas, changed) = (Shared::<Schemas>::default(), Arc::new(Notify::new()));
    let (said, receiver) = watch::channel(None);
    for name in crd::records().iter().map(ResourceExt::name_any) {
        let (schemas, changed) = (schemas.clone(), changed.clone());
        tasks.spawn(Watches::default().watch(
            Api::<Installed>::all(env.client.clone()),
            watcher::Config::default().fields(&format!("metadata.name={name}")),
            Source { cluster: "local", kind: "CustomResourceDefinition" },
            env.metrics.clone(),
            move |change| {
                schemas.with(|schemas| schemas.take_in(&name, change));
                changed.notify_one();
            },
        ));
    }
    tasks.spawn(async move {
        loop {
            changed.notified().await;
            tokio::time::sleep(IN_FORCE).await;
            let now = schemas.with(|schemas| schemas.said());
            said.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
        }
    });
    receiver
}

/// Each CRD that was looked for, by name, as it was when it last lacked nothing.
#[derive(Default)]
struct Schemas(BTreeMap<String, Option<Version>>);

impl Schemas {
    /// Takes in what the watch of the CRD `name` told. One that lacks something, or is gone, counts as it was before: what is read
    /// of its records now is worth less than what was read then.
    fn take_in(&mut self, name: &str, change: Change<Installed>) {
        let there = match change {
            Change::Apply(crd) => vec![crd],
            Change::Reset(crds) => crds,
            Change::Remove(_) => vec![],
        };
        let known = self.0.entry(name.to_owned()).or_default();
        let whole =
            |crd: &Installed| crd.lacks(crd::records()).is_some_and(|(_, lacking)| lacking.is_empty());
        if let Some(crd) = there.iter().find(|crd| whole(crd)) {
            *known = Some(Version::of(crd));
        }
    }

    fn said(&self) -> Said {
        let is_known = self.0.len() == crd::records().len();
        let versions = self.0.values().flatten().map(Version::to_string);
        is_known.then(|| versions.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const IMPORTS: &str = "resourceimports.multicluster.crd.antrea.io";

    fn installed(uid: &str, generation: i64, change: impl Fn(&mut Value)) -> Installed {
        let ours = crd::records().into_iter().find(|crd| crd.name_any() == IMPORTS).unwrap();
        let mut crd = json!(ours);
        crd["metadata"]["uid"] = json!(uid);
        crd["metadata"]["generation"] = json!(generation);
        change(&mut crd);
        serde_json::from_value(crd).unwrap()
    }

    fn whole(uid: &str, generation: i64) -> Installed {
        installed(uid, generation, |_| ())
    }

    fn pruned(uid: &str, generation: i64) -> Installed {
        installed(uid, generation, |crd| {
            let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            spec["properties"].as_object_mut().unwrap().remove("exporters").unwrap();
        })
    }

    #[test]
    fn only_a_crd_that_lacks_nothing_is_another_one() {
        let mut schemas = Schemas::default();
        let others: Vec<_> =
            crd::records().iter().map(ResourceExt::name_any).filter(|name| name != IMPORTS).collect();
        others.iter().for_each(|name| schemas.take_in(name, Change::Reset(vec![])));
        assert_eq!(schemas.said(), None, "one was not looked for yet");
        let mut told = |change| {
            schemas.take_in(IMPORTS, change);
            schemas.said().unwrap()
        };
        assert_eq!(told(Change::Reset(vec![pruned("u", 1)])), "");
        assert_eq!(told(Change::Apply(whole("u", 2))), "u.2");
        assert_eq!(told(Change::Apply(pruned("u", 3))), "u.2");
        assert_eq!(told(Change::Apply(whole("u", 4))), "u.4");
        assert_eq!(told(Change::Remove(whole("u", 4))), "u.4");
        assert_eq!(told(Change::Reset(vec![])), "u.4");
        assert_eq!(told(Change::Apply(whole("v", 1))), "v.1");
    }
}
