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
pub(crate) fn watch(env: &Env, watches: &Watches, tasks: &mut JoinSet<()>) -> watch::Receiver<Said> {
    let (schemas, changed) = (Shared::<Schemas>::default(), Arc::new(Notify::new()));
    let (said, receiver) = watch::channel(None);
    for name in crd::records().iter().map(ResourceExt::name_any) {
        let (schemas, changed) = (schemas.clone(), changed.clone());
        tasks.spawn(watches.watch(
            Api::<Installed>::all(env.client.clone()),
            watcher::Config::default().fields(&format!("metadata.name={name}")),
            Source { cluster: "local", kind: "CustomResourceDefinition" },
            env.metrics.clone(),
            move |change| {
                if schemas.with(|schemas| schemas.take_in(&name, change)) {
                    changed.notify_one();
                }
            },
        ));
    }
    tasks.spawn(async move {
        loop {
            changed.notified().await;
            // The last of several that are put right one after the other has to be in force, too.
            while tokio::time::timeout(IN_FORCE, changed.notified()).await.is_ok() {}
            let now = schemas.with(|schemas| schemas.said());
            said.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
        }
    });
    receiver
}

/// How a CRD is installed.
#[derive(PartialEq, Eq)]
enum Known {
    Absent,
    /// It has lacked something since we look.
    Lacking,
    /// As it was when it last lacked nothing.
    Whole(Version),
}

/// Each CRD that was looked for, by name.
#[derive(Default)]
struct Schemas(BTreeMap<String, Known>);

impl Schemas {
    /// Takes in what the watch of the CRD `name` told; whether something is known anew. A CRD that lacks something now, or is gone,
    /// counts as it was: what is read of its records now is worth less than what was read then.
    fn take_in(&mut self, name: &str, change: Change<Installed>) -> bool {
        let there = match change {
            Change::Apply(crd) => Some(crd),
            Change::Reset(crds) => crds.into_iter().next(),
            Change::Remove(_) => None,
        };
        let is_whole =
            |crd: &Installed| crd.lacks(crd::records()).is_some_and(|(_, lacking)| lacking.is_empty());
        let now = match &there {
            None => Known::Absent,
            Some(crd) if is_whole(crd) => Known::Whole(Version::of(crd)),
            Some(_) => Known::Lacking,
        };
        let before = self.0.get(name);
        if before == Some(&now)
            || (matches!(before, Some(Known::Whole(_))) && !matches!(now, Known::Whole(_)))
        {
            return false;
        }
        self.0.insert(name.to_owned(), now);
        true
    }

    /// Nothing while it is not known of each how it was when it lacked nothing.
    fn said(&self) -> Said {
        let version = |known: &Known| match known {
            Known::Absent => Some(None),
            Known::Lacking => None,
            Known::Whole(version) => Some(Some(version.to_string())),
        };
        let versions: Option<Vec<_>> = self.0.values().map(version).collect();
        let versions = versions.filter(|all| all.len() == crd::records().len())?;
        Some(versions.into_iter().flatten().collect::<Vec<_>>().join(","))
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
        let names = crd::records();
        let others: Vec<_> = names.iter().map(ResourceExt::name_any).filter(|name| name != IMPORTS).collect();
        for name in &others {
            assert!(schemas.take_in(name, Change::Reset(vec![])), "{name} is not there");
        }
        assert_eq!(schemas.said(), None, "one was not looked for yet");
        let mut told = |change| (schemas.take_in(IMPORTS, change), schemas.said());
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(told(Change::Reset(vec![pruned("u", 1)])), (true, None), "what it was is not known");
        assert_eq!(told(Change::Apply(whole("u", 2))), (true, says("u.2")));
        assert_eq!(told(Change::Apply(whole("u", 2))), (false, says("u.2")), "its status");
        assert_eq!(told(Change::Apply(pruned("u", 3))), (false, says("u.2")));
        assert_eq!(told(Change::Apply(whole("u", 4))), (true, says("u.4")));
        assert_eq!(told(Change::Remove(whole("u", 4))), (false, says("u.4")));
        assert_eq!(told(Change::Reset(vec![])), (false, says("u.4")));
        assert_eq!(told(Change::Apply(whole("v", 1))), (true, says("v.1")));
    }
}
