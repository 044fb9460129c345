//! Ports of a slice by the last valid export: pure.
//!
//! A port of the Service is the same while its number and protocol are, whatever its name. Where the Service as it is has such a port, its
//! slices say where it leads. Otherwise, and until they do, it leads where it led before: those Pods still listen there.

use api::{
    name, port,
    slice::{SlicePayload, SlicePort},
};
use k8s_openapi::api::core::v1 as core;

use super::{Offer, exported_port, said, word};
use crate::view::Slice;

/// The ports of that slice, of which the `record` was written last.
pub(super) fn ports(offer: &Offer<'_>, record: &str, slice: &Slice) -> Vec<SlicePort> {
    let of = |exported: &core::ServicePort| {
        let local = offer.local_port(exported);
        let named_so = local.and_then(|local| {
            slice.ports.iter().find(|port| word(port.name.as_ref()) == word(local.name.as_ref()))
        });
        let now = named_so.and_then(|port| exported_port(port, exported.port, exported.app_protocol.clone()));
        let before = || said(offer, record).and_then(|said| led(said, exported));
        // Of a new slice nothing was said. Where Pods differ in it, it is not known which of them these are like.
        let elsewhere = || if local.is_none() { led_everywhere(offer, slice, exported) } else { None };
        now.or_else(before).or_else(|| imported(offer, record, exported)).or_else(elsewhere)
    };
    offer.ports().iter().filter_map(of).collect()
}

/// Where a slice led for that port when it was said last.
fn led(said: &SlicePayload, exported: &core::ServicePort) -> Option<SlicePort> {
    let is_it = |port: &&SlicePort| {
        port::is_same(port.service_port, Some(&port.protocol), exported.port, exported.protocol.as_deref())
    };
    said.ports.iter().find(is_it).cloned()
}

/// Where the slice led that is imported here of it: the record is not known before the leader is there, and then ports have the names they
/// are imported under.
fn imported(offer: &Offer<'_>, record: &str, exported: &core::ServicePort) -> Option<SlicePort> {
    let there = offer.local.imported?.get(&name::imported_slice(&offer.local.name.name, record))?;
    let port = there.ports.iter().find(|port| word(port.name.as_ref()) == word(exported.name.as_ref()))?;
    exported_port(port, exported.port, exported.app_protocol.clone())
}

/// Where all slices of the same family led for that port, if that is one place.
fn led_everywhere(offer: &Offer<'_>, slice: &Slice, exported: &core::ServicePort) -> Option<SlicePort> {
    let records = offer.local.records.values().filter_map(|record| record.spec.0.as_ref().ok());
    let payloads = records.filter_map(|spec| spec.endpoint_slice.as_ref());
    let of_family = payloads.filter(|payload| payload.address_type == slice.address_type);
    let mut led = of_family.filter_map(|payload| led(payload, exported));
    let first = led.next()?;
    led.all(|other| other.port == first.port).then_some(first)
}
