//! What users export: the ServiceExport, the Service and the endpoints of a name in a cluster, and since when all of it is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::label;
use serde_json::Value;

use super::{Author, Write};

/// Cluster, and `namespace/name` of a Service.
pub(super) type Place = (String, String);

/// What users have, by place.
#[derive(Default)]
pub(super) struct Exports(BTreeMap<Place, Offer>);

/// What a cluster has of a Service.
#[derive(Default)]
pub(super) struct Offer {
    has_export: bool,
    /// The ServiceExport is missing because its cluster was restored from a backup that lacks it: nobody took it back.
    is_lost: bool,
    has_service: bool,
    /// Ready addresses, by slice.
    slices: BTreeMap<String, BTreeSet<String>>,
    /// Since when it is exported with ready endpoints.
    whole: Option<Duration>,
    /// When it was last exported, if it is not.
    exported: Option<Duration>,
    /// When an address was there last, if it is not there.
    had: BTreeMap<String, Duration>,
}

impl Offer {
    /// Whether it is exported with ready endpoints, and has been for so long.
    pub(super) fn is_whole(&self, now: Duration, since: Duration) -> bool {
        self.whole.is_some_and(|whole| now - whole >= since)
    }

    /// Whether it is exported, or was at the time `since` or later.
    pub(super) fn was_exported(&self, since: Duration) -> bool {
        self.is_exported() || self.is_lost || self.exported.is_some_and(|exported| exported >= since)
    }

    /// Whether it has an address, or had it at the time `since` or later.
    pub(super) fn had(&self, address: &str, since: Duration) -> bool {
        let has = self.slices.values().any(|addresses| addresses.contains(address));
        has || (self.is_lost && self.had.contains_key(address))
            || self.had.get(address).is_some_and(|had| *had >= since)
    }

    fn is_exported(&self) -> bool {
        self.has_export && self.has_service
    }

    fn change(&mut self, now: Duration, change: impl FnOnce(&mut Self)) {
        let was_exported = self.is_exported();
        change(self);
        if was_exported && !self.is_exported() {
            self.exported = Some(now);
        }
        let is_whole = self.is_exported() && self.slices.values().any(|addresses| !addresses.is_empty());
        self.whole = if is_whole { self.whole.or(Some(now)) } else { None };
    }
}

impl Exports {
    /// Takes note of a write.
    pub(super) fn note(&mut self, write: &Write<'_>) {
        let is_there = write.after.is_some_and(|after| !after["metadata"]["deletionTimestamp"].is_string());
        match write.kind {
            "serviceexports" => self.change(write, write.name, |offer| {
                let went = offer.has_export && !is_there;
                offer.has_export = is_there;
                // What is missing after another restore, too, was missing before.
                offer.is_lost = !is_there && *write.author == Author::Restore && (went || offer.is_lost);
            }),
            "services" => self.change(write, write.name, |offer| offer.has_service = is_there),
            "endpointslices" => self.note_slice(write, is_there),
            _ => {}
        }
    }

    fn note_slice(&mut self, write: &Write<'_>, is_there: bool) {
        let Some(service) = write.label(label::SERVICE_NAME) else { return };
        let now = if is_there { ready(write.after) } else { BTreeSet::new() };
        self.change(write, service, |offer| {
            for address in offer.slices.insert(write.name.to_owned(), now).into_iter().flatten() {
                offer.had.insert(address, write.at);
            }
        });
    }

    fn change(&mut self, write: &Write<'_>, service: &str, change: impl FnOnce(&mut Offer)) {
        let place = (write.cluster.to_owned(), format!("{}/{service}", write.namespace));
        self.0.entry(place).or_default().change(write.at, change);
    }

    pub(super) fn get(&self, cluster: &str, service: &str) -> Option<&Offer> {
        self.0.get(&(cluster.to_owned(), service.to_owned()))
    }

    /// Clusters that have exported a Service with ready endpoints for so long.
    pub(super) fn whole<'a>(
        &'a self,
        service: &'a str,
        now: Duration,
        since: Duration,
    ) -> impl Iterator<Item = &'a str> {
        let of_it = self.0.iter().filter(move |((_, of), offer)| of == service && offer.is_whole(now, since));
        of_it.map(|((cluster, _), _)| cluster.as_str())
    }
}

/// Addresses of the ready endpoints of a slice.
pub(super) fn ready(slice: Option<&Value>) -> BTreeSet<String> {
    let endpoints = slice.and_then(|slice| slice["endpoints"].as_array()).into_iter().flatten();
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    let addresses = ready.flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten());
    addresses.filter_map(|address| address.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::invariant::{Author, testkit::write};

    #[test]
    fn an_export_is_whole_since_the_last_part_of_it_came() {
        let mut exports = Exports::default();
        let (seconds, user) = (Duration::from_secs, Author::Other);
        let slice = json!({"metadata": {"labels": {label::SERVICE_NAME: "web"}}, "endpoints": [{"addresses": ["10.1.1.1"]}]});
        let object = json!({});
        let note = |exports: &mut Exports, at: u64, kind: &str, after: Option<&Value>| {
            let before = after.is_none().then_some(if kind == "endpointslices" { &slice } else { &object });
            exports.note(&Write { at: seconds(at), before, after, ..write("east", kind, &user) });
        };
        note(&mut exports, 1, "services", Some(&object));
        note(&mut exports, 2, "endpointslices", Some(&slice));
        note(&mut exports, 3, "serviceexports", Some(&object));
        let whole = |exports: &Exports, at: u64| exports.whole("shop/web", seconds(at), seconds(5)).count();
        assert_eq!((whole(&exports, 7), whole(&exports, 8)), (0, 1));
        note(&mut exports, 9, "endpointslices", None);
        assert_eq!(whole(&exports, 20), 0);
        let offer = exports.get("east", "shop/web").unwrap();
        assert!(
            offer.had("10.1.1.1", seconds(9))
                && !offer.had("10.1.1.1", seconds(10))
                && offer.was_exported(seconds(99))
        );
        note(&mut exports, 12, "serviceexports", None);
        let offer = exports.get("east", "shop/web").unwrap();
        assert!(offer.was_exported(seconds(12)) && !offer.was_exported(seconds(13)));
    }

    #[test]
    fn what_a_restore_took_away_was_not_taken_back() {
        let mut exports = Exports::default();
        let (seconds, user) = (Duration::from_secs, Author::Other);
        let slice = json!({"metadata": {"labels": {label::SERVICE_NAME: "web"}}, "endpoints": [{"addresses": ["10.1.1.1"]}]});
        let object = json!({});
        for (kind, object) in [("services", &object), ("endpointslices", &slice), ("serviceexports", &object)]
        {
            exports.note(&Write { at: seconds(1), after: Some(object), ..write("east", kind, &user) });
            let gone = Write { before: Some(object), ..write("east", kind, &Author::Restore) };
            exports.note(&Write { at: seconds(9), ..gone });
        }
        let is_fresh = |exports: &Exports| {
            let offer = exports.get("east", "shop/web").unwrap();
            offer.was_exported(seconds(99)) && offer.had("10.1.1.1", seconds(99))
        };
        assert!(is_fresh(&exports));
        exports.note(&Write { after: Some(&object), ..write("east", "serviceexports", &user) });
        exports.note(&Write { before: Some(&object), ..write("east", "serviceexports", &user) });
        assert!(!is_fresh(&exports));
    }
}
