//! What is not as it should be, though nothing failed.

use api::{
    cluster_set::{EXPORTS_DECLARED, IMPORTS_COMPLETE},
    condition::{Status, Verdict},
};

use crate::feature::{About, Shortfall};

/// What there is to say about the imports or the exports of this cluster.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::membership) struct Complete {
    pub(in crate::membership) verdict: Verdict,
    /// Whether somebody has to act.
    pub(in crate::membership) is_problem: bool,
}

/// Whether everything is imported that others export, and declared what is exported.
pub(in crate::membership) fn complete(shortfalls: &[Shortfall]) -> Vec<Complete> {
    let all = [
        (
            About::Imports,
            IMPORTS_COMPLETE,
            "Complete",
            "everything that other clusters export is imported here",
        ),
        (About::Exports, EXPORTS_DECLARED, "Declared", "everything that is exported has its ServiceExport"),
    ];
    let said = |(about, type_, reason, message): (_, _, _, &str)| {
        let is_about = |shortfall: &&Shortfall| shortfall.about == about;
        let these: Vec<_> = shortfalls.iter().filter(is_about).collect();
        said(type_, &these, &Verdict::new(type_, Status::True, reason, message))
    };
    let mut all = all.map(said);
    // A note makes nothing incomplete.
    for note in shortfalls.iter().filter(|shortfall| shortfall.about == About::Note) {
        let imports = &mut all[0].verdict;
        imports.message = format!("{}. {}", imports.message, note.message);
        if imports.status == Status::True {
            imports.reason = note.reason.to_owned();
        }
    }
    all.into()
}

/// A condition that is a problem wherever it is not `True`.
impl From<Verdict> for Complete {
    fn from(verdict: Verdict) -> Self {
        Self { is_problem: verdict.status == Status::False, verdict }
    }
}

/// The reason is that of the first problem, or else of the first shortfall.
fn said(type_: &'static str, shortfalls: &[&Shortfall], good: &Verdict) -> Complete {
    let problem = shortfalls.iter().find(|shortfall| shortfall.is_problem);
    let verdict = match problem.or(shortfalls.first()) {
        Some(first) => {
            let messages: Vec<_> = shortfalls.iter().map(|shortfall| shortfall.message.as_str()).collect();
            Verdict::new(type_, Status::False, first.reason, messages.join(". "))
        }
        None => good.clone(),
    };
    Complete { verdict, is_problem: problem.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_the_reason_and_all_is_said() {
        let shortfall = |about, reason: &'static str, is_problem| Shortfall {
            about,
            reason,
            message: format!("{reason} it is"),
            is_problem,
        };
        let few = shortfall(About::Imports, "TooMany", true);
        let none = shortfall(About::Imports, "NoNamespace", false);
        let vanished = shortfall(About::Exports, "Vanished", true);
        let said = |shortfalls: &[Shortfall]| {
            let said = complete(shortfalls).into_iter();
            let said = said.map(|Complete { verdict, is_problem }| {
                (verdict.status, verdict.reason, verdict.message, is_problem)
            });
            <[_; 2]>::try_from(said.collect::<Vec<_>>()).unwrap()
        };
        let both = "NoNamespace it is. TooMany it is".to_owned();
        let [imports, exports] = said(&[none.clone(), few, vanished]);
        assert_eq!(imports, (Status::False, "TooMany".into(), both, true));
        assert_eq!(exports, (Status::False, "Vanished".into(), "Vanished it is".into(), true));
        let one = (Status::False, "NoNamespace".into(), none.message.clone(), false);
        assert_eq!(said(&[none])[0], one);
        let copies = shortfall(About::Note, "Copies", false);
        let complete_but = said(std::slice::from_ref(&copies))[0].clone();
        assert_eq!((complete_but.0, complete_but.1.as_str()), (Status::True, "Copies"));
        assert!(complete_but.2.ends_with("is imported here. Copies it is"), "{}", complete_but.2);
        let none = shortfall(About::Imports, "NoNamespace", false);
        assert_eq!(said(&[none, copies])[0].1, "NoNamespace");
        assert!(complete(&[]).iter().all(|said| said.verdict.status == Status::True));
    }
}
