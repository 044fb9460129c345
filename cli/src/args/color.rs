//! Colours of marks on a terminal. No line depends on them: each mark is a word as well.

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};

/// Words that begin a line, after the number of its step if it has one, and their colours.
const MARKS: [(&str, AnsiColor); 8] = [
    ("ok", AnsiColor::Green),
    ("OK", AnsiColor::Green),
    ("warn", AnsiColor::Yellow),
    ("WARN", AnsiColor::Yellow),
    ("FAIL", AnsiColor::Red),
    ("FAILED", AnsiColor::Red),
    ("problem:", AnsiColor::Red),
    ("skip", AnsiColor::BrightBlack),
];

/// Uses colours from now on as `--color` says; `auto` is for a terminal, unless `NO_COLOR` or `TERM=dumb` is set.
pub(super) fn choose(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// The text with the mark of each line in its colour, for a stream that removes colours where they are not wanted.
pub(super) fn marked(text: &str) -> String {
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> String {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = line.split_whitespace();
    let first = words.next().and_then(|word| if is_number(word) { words.next() } else { Some(word) });
    let mark = first.and_then(|word| MARKS.iter().find(|(mark, _)| *mark == word));
    let Some((mark, color)) = mark else { return line.to_owned() };
    let style = Style::new().fg_color(Some((*color).into()));
    line.replacen(mark, &format!("{style}{mark}{style:#}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_line_has_a_colour_and_nothing_else() {
        let text = "1 ok    set  all is ok\n  skip  dns\nproblem: west: FAIL\nwest: ok\n3 FAIL import\n\n";
        let red = "\u{1b}[31m";
        let colored = marked(text);
        assert_eq!(anstream::adapter::strip_str(&colored).to_string(), text);
        assert!(colored.starts_with("1 \u{1b}[32mok\u{1b}[0m    set  all is ok\n"), "{colored:?}");
        assert!(colored.contains(&format!("{red}problem:\u{1b}[0m west: FAIL\nwest: ok\n")), "{colored:?}");
        assert!(colored.contains(&format!("3 {red}FAIL")), "{colored:?}");
    }
}
