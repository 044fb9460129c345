//! Which operations of users met which faults. Pure.

use std::{collections::BTreeSet, time::Duration};

use super::plan::{Happened, Happens};

/// What a fault leaves behind lasts so long: watches begin anew, replicas take Leases.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// What has happened in some runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// How many operations were done.
    pub operations: usize,
    pub faults: usize,
    /// An operation, and a fault during which it was done.
    pub pairs: BTreeSet<(String, String)>,
}

impl Coverage {
    /// Of one run.
    pub fn of(log: &[Happened]) -> Self {
        let (operations, faults): (Vec<_>, Vec<_>) =
            log.iter().partition(|happened| matches!(happened.what, Happens::Deed(_)));
        let done: Vec<_> = operations.into_iter().filter(|operation| operation.failed.is_none()).collect();
        let meets = |operation: &Happened, fault: &Happened| {
            fault.began <= operation.ended && operation.began <= fault.ended + AFTERWARDS
        };
        let pairs = done.iter().flat_map(|operation| {
            let met = faults.iter().filter(|fault| meets(operation, fault));
            met.map(|fault| (operation.what.kind(), fault.what.kind()))
        });
        Self { operations: done.len(), faults: faults.len(), pairs: pairs.collect() }
    }

    /// Takes in what happened in others.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.faults += other.faults;
        self.pairs.extend(other.pairs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::{
        crew::Role,
        places::Place,
        plan::{
            deed::{Deed, What},
            disorder::Disorder,
        },
    };

    fn happened(began: u64, ended: u64, what: Happens, failed: bool) -> Happened {
        let seconds = Duration::from_secs;
        Happened { began: seconds(began), ended: seconds(ended), what, failed: failed.then(String::new) }
    }

    #[test]
    fn an_operation_meets_the_faults_during_which_it_is_done() {
        let place = Place { cluster: "east", namespace: String::new(), service: String::new() };
        let deed = |what| Happens::Deed(Deed { place: place.clone(), what });
        let stop = Happens::Disorder(Disorder::Stop { role: Role::East, replica: 0 });
        let log = [
            happened(1, 1, deed(What::Unexport), false),
            happened(2, 3, stop, false),
            happened(3, 3, deed(What::DropSlice), false),
            happened(4, 4, deed(What::Ports(1)), true),
            happened(9, 9, deed(What::DeleteService), false),
        ];
        let coverage = Coverage::of(&log);
        assert_eq!((coverage.operations, coverage.faults), (3, 1));
        assert_eq!(coverage.pairs, BTreeSet::from([("DropSlice".to_owned(), "Stop".to_owned())]));
    }
}
