//! What is not imported here, though nothing failed.

use api::{
    cluster_set::IMPORTS_COMPLETE,
    condition::{Status, Verdict},
};

use crate::feature::Shortfall;

/// What there is to say about the imports of this cluster.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::membership) struct Imports {
    pub(in crate::membership) verdict: Verdict,
    /// Whether somebody has to act.
    pub(in crate::membership) is_problem: bool,
}

/// Whether everything is imported that others export. The reason is that of the first problem, or else of the first shortfall.
pub(in crate::membership) fn imports(shortfalls: &[Shortfall]) -> Imports {
    let problem = shortfalls.iter().find(|shortfall| shortfall.is_problem);
    let verdict = match problem.or(shortfalls.first()) {
        Some(first) => {
            let messages: Vec<_> = shortfalls.iter().map(|shortfall| shortfall.message.as_str()).collect();
            Verdict::new(IMPORTS_COMPLETE, Status::False, first.reason, messages.join(". "))
        }
        None => {
            let message = "everything that other clusters export is imported here";
            Verdict::new(IMPORTS_COMPLETE, Status::True, "Complete", message)
        }
    };
    Imports { verdict, is_problem: problem.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_the_reason_and_all_is_said() {
        let shortfall = |reason: &'static str, is_problem| Shortfall {
            reason,
            message: format!("{reason} it is"),
            is_problem,
        };
        let (few, none) = (shortfall("TooMany", true), shortfall("NoNamespace", false));
        let said = |shortfalls: &[Shortfall]| {
            let Imports { verdict, is_problem } = imports(shortfalls);
            (verdict.status, verdict.reason, verdict.message, is_problem)
        };
        let both = "NoNamespace it is. TooMany it is".to_owned();
        assert_eq!(said(&[none.clone(), few]), (Status::False, "TooMany".into(), both, true));
        let one = (Status::False, "NoNamespace".into(), none.message.clone(), false);
        assert_eq!(said(&[none]), one);
        assert_eq!(imports(&[]).verdict.status, Status::True);
    }
}
