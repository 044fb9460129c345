//! All messages that users read, as they stand in the source: a page to be read aloud.
//!
//! A message is a text with two spaces or more: a sentence, or part of one. Left out are tests, log lines (arguments of `tracing`), expressions of
//! policies, and attributes but `#[error]`: comments and the help of flags have pages of their own.

use std::{
    collections::BTreeSet,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Item, LitStr,
    buffer::{Cursor, TokenBuffer},
    visit::{self, Visit},
};

/// The crates whose messages users read, and what messages of each are.
const CRATES: [(&str, &str); 9] = [
    ("api", "in the messages of all others"),
    ("kit", "in the messages of all daemons"),
    ("rules", "condition `Conflict` of ServiceExports"),
    ("picture", "output of `freeport why`, `freeport check` and `freeport explain`"),
    ("presence", "in conditions of ClusterSets"),
    ("leader", "conditions and Events of `freeport-leader`"),
    ("member", "conditions and Events of `freeport-member`"),
    ("webhook", "answers of `freeport-webhook`"),
    ("cli", "output and errors of `freeport`, and what policies say when they refuse"),
];

/// A text with fewer is a name or a word.
const SPACES: usize = 2;

/// Whoever has one of these is an expression of a policy.
const OPERATORS: [&str; 8] = ["==", "!=", "&&", "||", ".all(", ".exists(", ".filter(", ".map("];

/// The messages of one source file, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// From the workspace on.
    file: String,
    messages: Vec<String>,
}

/// The messages of all crates, sorted by file.
///
/// # Errors
/// A file that cannot be read, or is no Rust.
pub(crate) fn find(workspace: &Path) -> Result<Vec<Source>, (PathBuf, io::Error)> {
    let mut sources = Vec::new();
    for (name, _) in CRATES {
        let folder = workspace.join(name).join("src");
        for root in ["lib.rs", "main.rs"].map(|root| folder.join(root)) {
            if root.is_file() {
                read(workspace, &root, &folder, &mut sources)?;
            }
        }
    }
    sources.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(sources)
}

/// Reads a module; its children are in `below`. Modules of tests are not read.
fn read(
    workspace: &Path,
    file: &Path,
    below: &Path,
    sources: &mut Vec<Source>,
) -> Result<(), (PathBuf, io::Error)> {
    let text = fs::read_to_string(file).map_err(|error| (file.to_owned(), error))?;
    let parsed = syn::parse_file(&text).map_err(|error| (file.to_owned(), io::Error::other(error)))?;
    sources.push(Source {
        file: file.strip_prefix(workspace).unwrap_or(file).display().to_string(),
        messages: messages(&parsed),
    });
    for item in &parsed.items {
        if let Item::Mod(child) = item
            && child.content.is_none()
            && !is_test(&child.attrs)
        {
            let name = child.ident.to_string();
            let flat = below.join(format!("{name}.rs"));
            let child = if flat.is_file() { flat } else { below.join(&name).join("mod.rs") };
            read(workspace, &child, &below.join(&name), sources)?;
        }
    }
    Ok(())
}

fn messages(file: &syn::File) -> Vec<String> {
    let mut found = Texts(Vec::new());
    found.visit_file(file);
    found.0.retain(|text| is_message(text));
    found.0
}

fn is_message(text: &str) -> bool {
    text.matches(' ').count() >= SPACES
        && has_words(text)
        && !OPERATORS.iter().any(|operator| text.contains(operator))
}

/// Whether there is more in it than what is put in, `{...}` or `%Y`.
fn has_words(text: &str) -> bool {
    let outside = text.split(['{', '%']).enumerate().map(|(nth, part)| match nth {
        0 => part,
        _ => part.split_once('}').map_or("", |(_, rest)| rest),
    });
    outside.flat_map(|part| part.split(|letter: char| !letter.is_alphabetic())).any(|word| word.len() > 1)
}

/// Whether something is compiled for tests only: `#[cfg(test)]`, `#[test]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_for_test = || attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        attribute.path().is_ident("test") || attribute.path().is_ident("cfg") && is_for_test()
    })
}

/// Collects texts: in expressions, in arguments of macros but those of `tracing`, and in `#[error]`.
struct Texts(Vec<String>);

impl Texts {
    fn tokens(&mut self, mut at: Cursor) {
        let mut is_log = false;
        while !at.eof() {
            if let Some((inner, _, _, rest)) = at.any_group() {
                if !is_log {
                    self.tokens(inner);
                }
                (is_log, at) = (false, rest);
            } else if let Some((literal, rest)) = at.literal() {
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    self.0.push(text.value());
                }
                at = rest;
            } else if let Some((name, rest)) = at.ident() {
                is_log |= name == "tracing";
                at = rest;
            } else if let Some((_, rest)) = at.token_tree() {
                at = rest;
            }
        }
    }
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            Item::Const(value) => &value.attrs,
            _ => &vec![],
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.0.push(text.value());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.segments.first().is_none_or(|first| first.ident != "tracing") {
            self.tokens(TokenBuffer::new2(call.tokens.clone()).begin());
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let syn::Meta::List(list) = &attribute.meta
            && list.path.is_ident("error")
        {
            self.tokens(TokenBuffer::new2(list.tokens.clone()).begin());
        }
    }
}

/// The whole page. A message that occurs again is where it is first.
pub(crate) fn page(sources: &[Source]) -> String {
    let mut page = "<!-- Generated by `cargo run -p e2e --bin pages`; do not edit. -->\n# Messages\n\n\
        All texts that users read in conditions, Events, errors and the output of commands, as they are in the source: `{...}` stands for what is \
        put in. Some are parts of a sentence, which stand before and after the sentence in the same file.\n\
        A message says what happened, to which object, and what to do. Read a new one aloud in its place here.\n"
        .to_owned();
    let mut known = BTreeSet::new();
    for (name, what) in CRATES {
        let _ = write!(page, "\n## {name}: {what}\n");
        for source in sources.iter().filter(|source| source.file.split('/').next() == Some(name)) {
            let new = source.messages.iter().filter(|message| known.insert(message.as_str()));
            let lines: String = new.map(|message| format!("{}\n", line(message))).collect();
            if !lines.is_empty() {
                let _ = write!(page, "\n{}\n\n```text\n{lines}```\n", source.file);
            }
        }
    }
    page
}

/// A message in one line.
fn line(message: &str) -> String {
    message.trim().replace('\n', "\\n")
}

#[test]
fn texts_of_tests_and_logs_and_comments_are_no_messages() {
    let file = syn::parse_file(
        r##"
        //! In a comment of it.
        #[derive(Error)]
        enum Failed {
            /// In another comment.
            #[error("in an error: {0}")]
            #[arg(help = "in some other attribute")]
            One(String),
        }
        const RULE: &str = "not this, a && b";
        #[cfg(test)]
        mod tests { const LINE: &str = "in a test"; }
        #[test]
        fn test() { say("in a test"); }
        fn run() {
            tracing::warn!(%error, "in a log line");
            join!(async { tracing::warn!("in a log line"); say("in a macro", "too short") });
            say(format!("in a format {}", "an argument of it"));
            say(format!("{} {}: {name}", a, at("%Y-%m-%d %H %M"), c));
            "by a method of it".to_owned()
        }
        "##,
    );
    let messages = messages(&file.unwrap());
    assert_eq!(
        messages,
        ["in an error: {0}", "in a macro", "in a format {}", "an argument of it", "by a method of it"]
    );
}

#[test]
fn a_message_is_on_the_page_once_and_in_one_line() {
    let source = |file: &str, messages: &[&str]| Source {
        file: file.into(),
        messages: messages.iter().map(|&message| message.into()).collect(),
    };
    let page = page(&[
        source("kit/src/a.rs", &["no answer in time", "of two\nlines, that"]),
        source("kit/src/b.rs", &["no answer in time"]),
    ]);
    assert!(
        page.contains("\nkit/src/a.rs\n\n```text\nno answer in time\nof two\\nlines, that\n```\n"),
        "{page}"
    );
    assert!(!page.contains("b.rs"), "{page}");
}
