//! As much of the Corefile's grammar as it takes to find server blocks and what is in them.
//!
//! Words are read as CoreDNS reads them: `#` begins a comment anywhere, `"` a quoted word only where a word begins, and braces are
//! words of their own. A snippet is put where it is imported. What other files hold is not seen.

use std::collections::BTreeMap;

/// More than anybody has; snippets that import each other are endless.
const IMPORTS: usize = 100;

/// A word of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// What CoreDNS takes it for.
    pub(super) text: String,
    /// As it is written, quotes included.
    pub(super) raw: String,
    /// Counted from one.
    pub(super) line: usize,
    pub(super) begins_line: bool,
}

/// A server block: what it serves, and what with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) keys: Vec<Word>,
    pub(super) directives: Vec<Directive>,
}

/// A plugin with its arguments and options: its name is the first word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) words: Vec<Word>,
}

impl Directive {
    pub(super) fn is(&self, name: &str) -> bool {
        self.words.first().is_some_and(|word| word.text == name)
    }

    /// What is given behind its name.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(|word| word.text.as_str()).take_while(|word| *word != "{")
    }

    /// What is given behind an option.
    pub(super) fn option(&self, name: &str) -> impl Iterator<Item = &str> {
        let options = self.words.iter().skip_while(|word| word.text != "{").skip(1);
        let mut given = options.skip_while(move |word| word.text != name).skip(1);
        std::iter::from_fn(move || given.next().filter(|word| !word.begins_line && word.text != "}"))
            .map(|word| word.text.as_str())
    }
}

/// The line from which on it cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) usize);

/// The server blocks of a Corefile.
pub(super) fn blocks(text: &str) -> Result<Vec<Block>, Unreadable> {
    let mut parser = Parser { words: words(text)?, at: 0, snippets: BTreeMap::new(), imports: 0 };
    let mut blocks = Vec::new();
    while parser.at < parser.words.len() {
        blocks.extend(parser.block()?);
    }
    Ok(blocks)
}

fn words(text: &str) -> Result<Vec<Word>, Unreadable> {
    let mut words: Vec<Word> = Vec::new();
    let (mut line, mut line_of_last) = (1, 0);
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while let Some(first) = rest.chars().next() {
        if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        if first.is_whitespace() {
            line += usize::from(first == '\n');
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (length, text) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_word(quoted).ok_or(Unreadable(line))?,
            None => plain_word(rest),
        };
        let raw = rest[..length].to_owned();
        let lines = raw.matches('\n').count();
        words.push(Word { text, raw, line, begins_line: line != line_of_last });
        (line, rest) = (line + lines, &rest[length..]);
        line_of_last = line;
    }
    Ok(words)
}

/// How long it is, and what it says. A carriage return is not even a space.
fn plain_word(rest: &str) -> (usize, String) {
    let ends = |c: char| c == '#' || (c.is_whitespace() && c != '\r');
    let length = rest.find(ends).unwrap_or(rest.len());
    (length, rest[..length].replace('\r', ""))
}

/// [`plain_word`] of what stands behind a quote; none if no quote ends it.
fn quoted_word(quoted: &str) -> Option<(usize, String)> {
    let (mut text, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match (escaped, c) {
            (false, '"') => return Some((at + 2, text)),
            (false, '\\') => escaped = true,
            (true, c) => {
                if c != '"' {
                    text.push('\\');
                }
                text.push(c);
                escaped = false;
            }
            (false, c) => text.push(c),
        }
    }
    None
}

struct Parser {
    words: Vec<Word>,
    at: usize,
    snippets: BTreeMap<String, Vec<Word>>,
    imports: usize,
}

impl Parser {
    /// One server block; none if it was a snippet, or nothing but imports.
    fn block(&mut self) -> Result<Option<Block>, Unreadable> {
        let keys = self.keys()?;
        if self.at == self.words.len() && keys.is_empty() {
            return Ok(None);
        }
        // Without braces the whole file is one block, and what is written below it would be a part of it.
        self.expect("{")?;
        if let [key] = &keys[..]
            && let Some(name) = key.text.strip_prefix('(').and_then(|name| name.strip_suffix(')'))
        {
            let words = self.until_closed()?;
            self.snippets.insert(name.to_owned(), words);
            return Ok(None);
        }
        let mut directives = Vec::new();
        while self.word()?.text != "}" {
            if self.word()?.text == "import" {
                self.import()?;
            } else {
                directives.push(self.directive()?);
            }
        }
        self.expect("}")?;
        Ok(Some(Block { keys, directives }))
    }

    /// In one line, or in several of which all but the last end with a comma.
    fn keys(&mut self) -> Result<Vec<Word>, Unreadable> {
        let (mut keys, mut goes_on) = (Vec::new(), true);
        while let Some(word) = self.words.get(self.at) {
            if word.text == "import" && word.begins_line {
                self.import()?;
                continue;
            }
            if word.text == "{" || (word.begins_line && !goes_on) {
                break;
            }
            let mut key = word.clone();
            goes_on = key.text.ends_with(',');
            if goes_on {
                key.text.pop();
            }
            keys.push(key);
            self.at += 1;
        }
        Ok(keys)
    }

    fn directive(&mut self) -> Result<Directive, Unreadable> {
        let mut words = vec![self.word()?.clone()];
        self.at += 1;
        let mut nesting = 0;
        loop {
            let word = self.word()?;
            match word.text.as_str() {
                "{" => nesting += 1,
                _ if word.begins_line && nesting == 0 => break,
                "}" if nesting == 0 => return Err(Unreadable(word.line)),
                "}" => nesting -= 1,
                "import" if word.begins_line => {
                    self.import()?;
                    continue;
                }
                _ => {}
            }
            words.push(word.clone());
            self.at += 1;
        }
        Ok(Directive { words })
    }

    /// Puts the snippet where it is imported; what is in a file is left out.
    fn import(&mut self) -> Result<(), Unreadable> {
        let line = self.word()?.line;
        let name = self.words.get(self.at + 1).filter(|word| !word.begins_line).ok_or(Unreadable(line))?;
        self.imports += 1;
        if self.imports > IMPORTS {
            return Err(Unreadable(line));
        }
        let words = self.snippets.get(&name.text).cloned().unwrap_or_default();
        self.words.splice(self.at..self.at + 2, words);
        Ok(())
    }

    /// The words up to the brace that closes the one before.
    fn until_closed(&mut self) -> Result<Vec<Word>, Unreadable> {
        let (begin, mut nesting) = (self.at, 1);
        while nesting > 0 {
            match self.word()?.text.as_str() {
                "{" => nesting += 1,
                "}" => nesting -= 1,
                _ => {}
            }
            self.at += 1;
        }
        let mut words = self.words[begin..self.at - 1].to_vec();
        // It takes the place of what begins a line.
        if let Some(first) = words.first_mut() {
            first.begins_line = true;
        }
        Ok(words)
    }

    fn expect(&mut self, text: &str) -> Result<(), Unreadable> {
        let word = self.word()?;
        if word.text != text {
            return Err(Unreadable(word.line));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&self) -> Result<&Word, Unreadable> {
        let end = || Unreadable(self.words.last().map_or(1, |word| word.line));
        self.words.get(self.at).ok_or_else(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `keys: directive arguments | ...` for each block.
    fn read(text: &str) -> Vec<String> {
        let of = |words: &[Word]| words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        let shown = |block: &Block| {
            let directives: Vec<_> = block.directives.iter().map(|directive| of(&directive.words)).collect();
            format!("{}: {}", of(&block.keys), directives.join(" | "))
        };
        blocks(text).unwrap_or_else(|error| panic!("{error:?}: {text}")).iter().map(shown).collect()
    }

    #[test]
    fn blocks_are_found_however_they_are_written() {
        for (text, blocks) in [
            ("", &[][..]),
            ("# nothing { here\n", &[]),
            (".:53 {\n    errors\n}\n", &[".:53: errors"]),
            ("\u{feff}.:53 {\r\n    errors\r\n}\r\n", &[".:53: errors"]),
            (". {\n}\na.example b.example:5353 {\n whoami\n}", &[".: ", "a.example b.example:5353: whoami"]),
            ("a.example,\nb.example\n{\n log\n}", &["a.example b.example: log"]),
            (". { # {\n log#}\n cache 30\n}", &[".: log | cache 30"]),
            (". {\n template \"{ }\" \"a \\\" # b\"\n}", &[".: template { } a \" # b"]),
            (". {\n a {\n  b {\n   c\n  }\n }\n d\n}", &[".: a { b { c } } | d"]),
            ("{$ZONE}:{$PORT} {\n forward . {%UPSTREAM%}\n}", &["{$ZONE}:{$PORT}: forward . {%UPSTREAM%}"]),
        ] {
            assert_eq!(read(text), blocks, "{text}");
        }
    }

    #[test]
    fn a_snippet_is_where_it_is_imported() {
        let text = "(common) {\n errors\n cache {\n  success 1\n }\n}\n. {\n import common\n log\n}\n";
        assert_eq!(read(text), [".: errors | cache { success 1 } | log"]);
        let text = "(options) {\n pods insecure\n}\n. {\n kubernetes a {\n  import options\n  ttl 5\n }\n}";
        assert_eq!(read(text), [".: kubernetes a { pods insecure ttl 5 }"]);
        let text = "import /etc/coredns/before\n. {\n import /etc/coredns/custom/*.override\n log\n}\nimport custom/*.server\n";
        assert_eq!(read(text), [".: log"]);
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        for (text, line) in [
            (".:53\nerrors\n", 2),
            (". {\n errors\n", 2),
            (". {\n errors }\n}", 2),
            ("}\n", 1),
            (".\n", 1),
            (". {\n log\n template \"open\n}\n", 3),
            ("(a) {\n import b\n}\n(b) {\n import a\n}\n. {\n import a\n}", 5),
            ("import\n. {\n}\n", 1),
        ] {
            assert_eq!(blocks(text).map_err(|Unreadable(line)| line).unwrap_err(), line, "{text}");
        }
    }

    #[test]
    fn arguments_and_options() {
        let text = ". {\n kubernetes cluster.local in-addr.arpa {\n  pods insecure\n  multicluster a b\n  ttl 5\n }\n}";
        let blocks = blocks(text).unwrap();
        let kubernetes = &blocks[0].directives[0];
        assert!(kubernetes.is("kubernetes") && !kubernetes.is("pods"));
        assert_eq!(kubernetes.arguments().collect::<Vec<_>>(), ["cluster.local", "in-addr.arpa"]);
        assert_eq!(kubernetes.option("multicluster").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(kubernetes.option("ttl").collect::<Vec<_>>(), ["5"]);
        assert_eq!(kubernetes.option("endpoint").count(), 0);
    }
}
