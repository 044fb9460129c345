//! Objects from YAML, and where each of them is.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use crate::Error;

/// One object.
#[derive(Debug)]
pub(super) struct Found {
    /// Where it is.
    pub(super) place: Place,
    /// Its kind, or an empty word.
    pub(super) kind: String,
    /// Its group and version.
    pub(super) api_version: String,
    /// All of it.
    pub(super) value: Value,
}

/// A document of a file, counted from 1.
#[derive(Clone, Debug)]
pub(super) struct Place {
    file: PathBuf,
    document: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file.display(), self.document)
    }
}

impl Place {
    /// The document cannot be used.
    pub(super) fn wrong(&self, why: &str) -> Error {
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let file = self.file.display();
        Error::Argument(format!("{self}: {why}. try: kubectl apply --dry-run=client -f {file}"))
    }
}

impl Found {
    /// The object as `K` has it.
    pub(super) fn decode<K: for<'de> Deserialize<'de>>(&self) -> Result<K, Error> {
        K::deserialize(&self.value).map_err(|error| self.place.wrong(&format!("{}: {error}", self.kind)))
    }
}

/// All objects of a file, or of the YAML and JSON files of a folder in the order of their names. A list stands for what is in it.
pub(super) fn read(path: &Path) -> Result<Vec<Found>, Error> {
    let failed = |source| {
        Error::Argument(format!("{}: {source}. try: --filename with a file or a folder", path.display()))
    };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return in_file(path);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if file.is_file() && ["yaml", "yml", "json"].contains(&extension) {
            files.push(file);
        }
    }
    files.sort();
    let mut all = Vec::new();
    for file in files {
        all.extend(in_file(&file)?);
    }
    Ok(all)
}

fn in_file(file: &Path) -> Result<Vec<Found>, Error> {
    let text = fs::read_to_string(file)
        .map_err(|source| Error::Argument(format!("{}: {source}. try: a file with YAML", file.display())))?;
    let mut all = Vec::new();
    for (at, document) in serde_yaml::Deserializer::from_str(&text).enumerate() {
        let place = Place { file: file.into(), document: at + 1 };
        let value = Value::deserialize(document).map_err(|error| place.wrong(&error.to_string()))?;
        objects(&place, value, &mut all)?;
    }
    Ok(all)
}

fn objects(place: &Place, value: Value, all: &mut Vec<Found>) -> Result<(), Error> {
    if value.is_null() {
        return Ok(());
    }
    let word = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (word("kind"), word("apiVersion"));
    if kind.is_empty() || api_version.is_empty() {
        return Err(place.wrong("no object with apiVersion and kind"));
    }
    if let (true, Some(Value::Array(items))) = (kind.ends_with("List"), value.get("items")) {
        return items.iter().try_for_each(|item| objects(place, item.clone(), all));
    }
    all.push(Found { place: place.clone(), kind, api_version, value });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<(String, String)>, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        fs::write(folder.path().join("README.md"), "# {").unwrap();
        let found = read(folder.path()).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|found| (found.kind, found.place.to_string())).collect())
    }

    #[test]
    fn documents_and_lists_are_read_and_what_does_not_parse_is_named() {
        let service = "apiVersion: v1\nkind: Service\n";
        let found = read_text(&format!(
            "---\n{service}---\n---\napiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: Pod}}\n"
        ));
        let found = found.unwrap();
        let kinds: Vec<_> = found.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["Service", "Pod"]);
        for (text, document) in [("a: [", 1), ("{}", 1)] {
            let said = read_text(&format!("{service}---\n{text}")).unwrap_err();
            assert!(said.contains(&format!("a.yaml, document {}: ", document + 1)), "{said}");
            assert!(said.contains("try: ") && !said.contains('\n'), "{said}");
        }
        assert!(read(Path::new("/nowhere")).unwrap_err().to_string().starts_with("/nowhere: "));
    }
}
