//! Our lines in somebody else's text, between two comments, so that they are found again whatever else changes.
//!
//! They go to the end, and end with a newline only if the text did: so it is known which newline came with them.

use std::{borrow::Cow, ops::Range};

const BEGIN: &str = "# freeport: begin";
const END: &str = "# freeport: end";

/// A mark is missing, or is there twice.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the lines {BEGIN:?} and {END:?} are no pair, each once and in this order: put the missing one back, or delete by hand what is left \
     of the block"
)]
pub struct Broken;

/// Where our lines are, marks included, up to the newline behind the last.
pub(super) fn find(text: &str) -> Result<Option<Range<usize>>, Broken> {
    let (mut at, mut begins, mut ends) = (0, Vec::new(), Vec::new());
    for line in text.split_inclusive('\n') {
        match line.trim() {
            BEGIN => begins.push(at),
            END => ends.push(at + line.strip_suffix('\n').map_or(line, without_return).len()),
            _ => {}
        }
        at += line.len();
    }
    match (&begins[..], &ends[..]) {
        ([], []) => Ok(None),
        (&[begin], &[end]) if begin < end => Ok(Some(begin..end)),
        _ => Err(Broken),
    }
}

/// The text with `lines` as ours, in place of those that it has.
pub(super) fn put(text: &str, lines: &str) -> Result<String, Broken> {
    let there = find(text)?;
    let newline = newline(there.as_ref().map_or(text, |range| &text[range.clone()]));
    let marked = format!("{BEGIN}\n{lines}{END}").replace('\n', newline);
    Ok(match there {
        Some(range) => format!("{}{marked}{}", &text[..range.start], &text[range.end..]),
        None if text.is_empty() || text.ends_with('\n') => format!("{text}{marked}{newline}"),
        None => format!("{text}{newline}{marked}"),
    })
}

/// The text without our lines and the newline that came with them; none if it has none of ours.
pub(super) fn cut(text: &str) -> Result<Option<String>, Broken> {
    let Some(range) = find(text)? else { return Ok(None) };
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let behind = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n'));
    Ok(Some(match behind {
        Some(after) => format!("{before}{after}"),
        None => before.strip_suffix(newline(&text[range])).unwrap_or(before).to_owned(),
    }))
}

/// The text with empty lines in place of ours, so that all others keep their numbers.
pub(super) fn blanked(text: &str) -> Cow<'_, str> {
    let Ok(Some(range)) = find(text) else { return text.into() };
    let empty = "\n".repeat(text[range.clone()].matches('\n').count());
    format!("{}{empty}{}", &text[..range.start], &text[range.end..]).into()
}

fn without_return(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text without our marks, of every ending.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("\r".to_owned()),
            Just("# freeport: ended".to_owned()),
            "[ -~é]{0,12}",
        ];
        let joined = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
        joined.prop_filter("without our marks", |text| find(text) == Ok(None))
    }

    proptest! {
        #[test]
        fn what_was_put_is_cut_to_the_byte(text in text(), lines in "([a-z {}]{0,9}\n){0,4}") {
            let with = put(&text, &lines).unwrap();
            prop_assert_ne!(&with, &text);
            prop_assert_eq!(&put(&with, &lines).unwrap(), &with);
            prop_assert_eq!(cut(&with).unwrap(), Some(text));
        }

        #[test]
        fn what_others_change_around_them_stays(before in text(), after in text(), lines in "([a-z]{1,9}\n){1,4}") {
            let with = put("was\n", &lines).unwrap();
            let ours = with.strip_prefix("was\n").unwrap();
            let edited = format!("{before}\n{ours}{after}");
            let newer = put(&edited, "newer\n").unwrap();
            let around = format!("{before}\n{after}");
            prop_assert_eq!(cut(&edited).unwrap(), Some(around.clone()));
            prop_assert_eq!(cut(&newer).unwrap(), Some(around));
        }
    }

    #[test]
    fn marks_that_are_no_pair_are_refused() {
        let (begin, end) = ("# freeport: begin\n", "# freeport: end\n");
        for marks in
            [vec![begin], vec![end], vec![end, begin], vec![begin, begin, end], vec![begin, end, begin, end]]
        {
            let text = marks.concat();
            assert_eq!((find(&text), put(&text, ""), cut(&text)), (Err(Broken), Err(Broken), Err(Broken)));
        }
        assert!(
            find("  # freeport: begin  \n\t# freeport: end").unwrap().is_some(),
            "as an editor indents them"
        );
    }
}
