//! What users do.

use std::{fmt, time::Duration};

use sim::random::Random;

use super::{millis, times};
use crate::chaos::places::{ANCHORS, NAMESPACES, PORTS, Place, Places, SERVICES, network};

/// Milliseconds between two deeds, and between two Namespaces that are deleted.
const APART: (u64, u64) = (100, 700);
const RENEWED: (u64, u64) = (12_000, 30_000);
/// So long before the end the last Namespace is deleted: that takes Kubernetes a while.
const AFTERWARDS: Duration = Duration::from_secs(10);

/// What a user does, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    pub place: Place,
    pub what: What,
}

/// An object that daemons make of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Import,
    Service,
    Slice,
}

/// What a user does. What is not there, or there already, is no reason to stop.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Makes what is missing of Service, slice and ServiceExport. The slice has this address.
    Export(String),
    /// Deletes the ServiceExport.
    Unexport,
    /// Deletes the Service, and leaves its ServiceExport.
    DeleteService,
    /// Gives the Service these endpoints.
    Endpoints(Vec<String>),
    /// Gives it a second slice with these.
    AnotherSlice(Vec<String>),
    DropSlice,
    /// Gives the Service so many of the ports.
    Ports(usize),
    /// Deletes what daemons made of an import, or writes a label and an annotation on it.
    DeleteMade(Made),
    Edit(Made),
    /// Deletes the Namespace, and makes it anew when it is gone.
    RenewNamespace,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.what, self.place)
    }
}

/// What users do all the time.
pub(super) fn deeds(random: &mut Random, lasts: Duration, places: &Places) -> Vec<(Duration, Deed)> {
    let mut addresses = Addresses::default();
    let deed = |random: &mut Random, addresses: &mut Addresses| match random.one_in(4) {
        true => about_an_anchor(random, addresses, places),
        false => anything(random, addresses, places),
    };
    times(random, lasts, APART).into_iter().map(|at| (at, deed(random, &mut addresses))).collect()
}

/// Namespaces that are deleted and come back.
pub(super) fn renewals(random: &mut Random, lasts: Duration, places: &Places) -> Vec<(Duration, Deed)> {
    let last = lasts.saturating_sub(AFTERWARDS);
    let mut times = times(random, last, RENEWED);
    if times.is_empty() {
        times.push(millis(random, (0, 1000)));
    }
    let clusters = places.clusters();
    let deed = |random: &mut Random| {
        let cluster = *random.pick(&clusters);
        let namespace = places.namespace(random.below(NAMESPACES));
        Deed { place: Place { cluster, namespace, service: String::new() }, what: What::RenewNamespace }
    };
    times.into_iter().map(|at| (at, deed(random))).collect()
}

fn anything(random: &mut Random, addresses: &mut Addresses, places: &Places) -> Deed {
    let namespace = places.namespace(random.below(NAMESPACES));
    let service = format!("s{}", random.below(SERVICES));
    let (exporter, clusters) = (*random.pick(places.exporters()), places.clusters());
    let (cluster, what) = match random.below(16) {
        0..=4 => (exporter, What::Export(addresses.one(random, exporter))),
        5 | 6 => (exporter, What::Unexport),
        7 => (exporter, What::DeleteService),
        8 | 9 => {
            let count = random.below(4);
            (exporter, What::Endpoints(addresses.some(random, exporter, count)))
        }
        10 => {
            let count = 1 + random.below(2);
            (exporter, What::AnotherSlice(addresses.some(random, exporter, count)))
        }
        11 => (exporter, What::DropSlice),
        12 => (exporter, What::Ports(1 + random.below(PORTS.len()))),
        13 | 14 => (*random.pick(&clusters), What::DeleteMade(made(random))),
        _ => (*random.pick(&clusters), What::Edit(made(random))),
    };
    Deed { place: Place { cluster, namespace, service }, what }
}

fn made(random: &mut Random) -> Made {
    *random.pick(&[Made::Import, Made::Service, Made::Slice])
}

/// Nothing by which it could be without endpoints at any time.
fn about_an_anchor(random: &mut Random, addresses: &mut Addresses, places: &Places) -> Deed {
    let anchor = random.pick(&ANCHORS);
    let own = *random.pick(anchor.always);
    let (cluster, what) = match (random.below(8), anchor.sometimes) {
        (0..=2, Some(other)) => (other, What::Export(addresses.one(random, other))),
        (3 | 4, Some(other)) => (other, What::Unexport),
        (5, _) => {
            let count = 1 + random.below(2);
            (own, What::AnotherSlice(addresses.some(random, own, count)))
        }
        (6, _) => (own, What::DropSlice),
        _ => {
            let count = 1 + random.below(4);
            (own, What::Endpoints(addresses.some(random, own, count)))
        }
    };
    let place = Place { cluster, namespace: places.anchors(), service: anchor.service.to_owned() };
    Deed { place, what }
}

/// Addresses that no endpoint had before.
#[derive(Default)]
struct Addresses(usize);

impl Addresses {
    fn one(&mut self, random: &mut Random, cluster: &str) -> String {
        self.0 += 1 + random.below(3);
        format!("10.{}.{}.{}", network(cluster), 1 + self.0 / 250 % 250, 1 + self.0 % 250)
    }

    fn some(&mut self, random: &mut Random, cluster: &str, count: usize) -> Vec<String> {
        (0..count).map(|_| self.one(random, cluster)).collect()
    }
}
