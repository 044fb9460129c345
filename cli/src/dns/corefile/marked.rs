//! Lines of ours in somebody else's text, between two that mark them, so that they are found again whatever was changed around them.
//!
//! They are put at the end, and end as the text does, with or without a newline: so it is seen which newline came with them.

use std::ops::Range;

const BEGIN: &str = "# freeport: begin";
const END: &str = "# freeport: end";

/// One of the marks is missing, or there are several.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Where our lines are, marks included, up to the newline behind the last.
pub(super) fn find(text: &str) -> Result<Option<Range<usize>>, Broken> {
    let mut at = 0;
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
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

/// The text with these lines of ours, in place of those that it has.
pub(super) fn put(text: &str, lines: &[String]) -> Result<String, Broken> {
    let there = find(text)?;
    let newline = newline(there.as_ref().map_or(text, |range| &text[range.clone()]));
    let marked = [&[BEGIN.to_owned()], lines, &[END.to_owned()]].concat().join(newline);
    Ok(match there {
        Some(range) => format!("{}{marked}{}", &text[..range.start], &text[range.end..]),
        None if text.is_empty() || text.ends_with('\n') => format!("{text}{marked}{newline}"),
        None => format!("{text}{newline}{marked}"),
    })
}

/// The text without our lines, and without the newline that came with them.
pub(super) fn cut(text: &str) -> Result<Option<String>, Broken> {
    let Some(range) = find(text)? else { return Ok(None) };
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let behind = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n'));
    Ok(Some(match behind {
        Some(after) => format!("{before}{after}"),
        None => before.strip_suffix(newline(&text[range])).unwrap_or(before).to_owned(),
    }))
}

/// The text with empty lines in place of ours, so that others stay where they are.
pub(super) fn blanked(text: &str) -> Result<Option<String>, Broken> {
    let Some(range) = find(text)? else { return Ok(None) };
    let empty = "\n".repeat(text[range.clone()].matches('\n').count());
    Ok(Some(format!("{}{empty}{}", &text[..range.start], &text[range.end..])))
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

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

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
        fn what_was_put_is_cut_to_the_byte(text in text(), lines in prop::collection::vec("[a-z {}]{0,9}", 0..4)) {
            let with = put(&text, &lines).unwrap();
            prop_assert_ne!(&with, &text);
            prop_assert_eq!(cut(&with).unwrap(), Some(text));
        }

        #[test]
        fn putting_again_changes_nothing(text in text(), lines in prop::collection::vec("[a-z {}]{0,9}", 0..4)) {
            let with = put(&text, &lines).unwrap();
            prop_assert_eq!(put(&with, &lines).unwrap(), with);
        }

        #[test]
        fn what_others_change_around_them_stays(before in text(), after in text(), lines in prop::collection::vec("[a-z]{1,9}", 1..4)) {
            let with = put("was\n", &lines).unwrap();
            let ours = with.strip_prefix("was\n").unwrap();
            let edited = format!("{before}\n{ours}{after}");
            let newer = put(&edited, &self::lines(&["newer"])).unwrap();
            let around = format!("{before}\n{after}");
            prop_assert_eq!(cut(&edited).unwrap(), Some(around.clone()));
            prop_assert_eq!(cut(&newer).unwrap(), Some(around));
        }
    }

    #[test]
    fn they_are_written_as_the_text_is() {
        let put = |text: &str| put(text, &lines(&["x"])).unwrap();
        assert_eq!(put(""), "# freeport: begin\nx\n# freeport: end\n");
        assert_eq!(put("a\n"), "a\n# freeport: begin\nx\n# freeport: end\n");
        assert_eq!(put("a"), "a\n# freeport: begin\nx\n# freeport: end");
        assert_eq!(put("a\r\n"), "a\r\n# freeport: begin\r\nx\r\n# freeport: end\r\n");
    }

    #[test]
    fn marks_that_are_no_pair_are_nobodys_to_guess() {
        let (begin, end) = ("# freeport: begin\n", "# freeport: end\n");
        for text in [
            begin.to_owned(),
            end.to_owned(),
            format!("{end}{begin}"),
            format!("{begin}{begin}{end}"),
            format!("{begin}{end}{begin}{end}"),
        ] {
            assert_eq!((find(&text), put(&text, &[]), cut(&text)), (Err(Broken), Err(Broken), Err(Broken)));
        }
        assert!(
            find("  # freeport: begin  \n\t# freeport: end").unwrap().is_some(),
            "as an editor indents them"
        );
    }
}
