//! The end of a log, for error messages.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

const LINES: usize = 15;
const LINE_LENGTH: usize = 400;
const READ: u64 = 64 * 1024;

/// The last lines of the file, indented; a note if there are none.
pub(crate) fn of_file(path: &Path) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok::<_, std::io::Error>(of_text(&String::from_utf8_lossy(&end)))
    };
    read().ok().filter(|tail| !tail.is_empty()).unwrap_or_else(|| "    (the log is empty)".into())
}

/// The last lines of the text, indented.
pub(crate) fn of_text(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    let indented = shown.iter().map(|line| format!("    {}", shorten(line)));
    indented.collect::<Vec<_>>().join("\n")
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(LINE_LENGTH) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_shortened() {
        let text = (0..40).map(|n| n.to_string() + "\n\n").collect::<String>() + &"ü".repeat(500);
        let tail = of_text(&text);
        assert_eq!(tail.lines().count(), LINES);
        assert!(tail.starts_with("    26\n"));
        assert!(tail.ends_with("ü..."));
    }

    #[test]
    fn missing_log_is_said() {
        assert!(of_file(Path::new("/nonexistent")).contains("empty"));
    }
}
