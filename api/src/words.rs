//! How messages name several things, and quote others.

use std::fmt::Display;

/// Most names in one sentence.
pub const NAMED: usize = 3;

/// Names as a sentence has them: `a, b, c and 2 more`.
pub fn first_names(names: impl IntoIterator<Item = impl Display>) -> String {
    first_of(names, ", ")
}

/// The same with something else between them, where the names themselves have commas.
pub fn first_of(names: impl IntoIterator<Item = impl Display>, between: &str) -> String {
    let mut names = names.into_iter();
    let first: Vec<_> = names.by_ref().take(NAMED).map(|name| name.to_string()).collect();
    let first = first.join(between);
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The text without what could end a line or move the cursor of a terminal: for words of others.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_carry_no_escape_codes() {
        assert_eq!(printable("a\u{1b}[31m\r\nb\u{9b}1m"), "a [31m  b 1m");
    }

    #[test]
    fn of_many_names_three_are_said() {
        let names = ["a", "b", "c", "d", "e"];
        let said = |count: usize| first_names(&names[..count]);
        assert_eq!([1, 3, 4, 5].map(said), ["a", "a, b, c", "a, b, c and 1 more", "a, b, c and 2 more"]);
        assert_eq!(first_of([1, 2, 3, 4], "; "), "1; 2; 3 and 1 more");
    }
}
