//! Which of several members did not get their leader: one that fails keeps no other one from it.

use crate::{
    Error,
    cluster::{Cluster, list},
    eraser::Say,
};

/// Those, each with why.
#[derive(Default)]
pub(super) struct Failed(Vec<(String, Error)>);

impl Failed {
    /// What came of the member of this name; if it failed, that is noted.
    pub(super) fn note<T>(&mut self, name: &str, outcome: Result<T, Error>) -> Option<T> {
        outcome.map_err(|error| self.0.push((name.to_owned(), error))).ok()
    }

    /// Says why each failed, where there was more than one member.
    pub(super) fn end(mut self, leader: &Cluster, members: usize, say: Say<'_>) -> Result<(), Error> {
        if members == 1 {
            return self.0.pop().map_or(Ok(()), |(_, error)| Err(error));
        }
        self.0.iter().for_each(|(_, error)| say(&error.to_string()));
        self.names(members).map_or(Ok(()), |reason| Err(leader.refuse(reason)))
    }

    /// Who failed, in a sentence, if anybody did.
    fn names(&self, members: usize) -> Option<String> {
        let names: Vec<_> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let few = || {
            format!(
                "{} of {members} members did not rejoin, for the reasons above: {}",
                names.len(),
                list(&names)
            )
        };
        (!names.is_empty()).then(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_failed_is_named_when_all_were_tried() {
        let mut failed = Failed::default();
        assert_eq!(failed.note("west", Ok(1)), Some(1));
        assert_eq!(failed.names(3), None);
        for name in ["east", "north"] {
            assert_eq!(failed.note::<()>(name, Err(Error::Argument("why".into()))), None);
        }
        let names = failed.names(3).unwrap();
        assert!(names.starts_with("2 of 3 members") && names.ends_with("east, north"), "{names}");
    }
}
