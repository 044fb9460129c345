//! The file that is written: in one step, readable for its owner alone.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use k8s_openapi::jiff::Timestamp;

use crate::{
    Error,
    bundle::{self, Files},
};

/// Where the bundle is written.
pub(super) struct Target {
    path: PathBuf,
    dir: PathBuf,
    replace: bool,
}

impl Target {
    /// Checks what can be checked before clusters are asked. A file that is there is replaced only if that is wanted.
    pub(super) fn new(path: &Path, replace: bool) -> Result<Self, Error> {
        if path.symlink_metadata().is_ok() && (!replace || path.is_dir()) {
            return Err(exists(path));
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match dir.metadata() {
            Ok(of) if of.is_dir() => Ok(Self { path: path.into(), dir: dir.into(), replace }),
            Ok(_) => Err(Error::File { path: dir.into(), source: std::io::ErrorKind::NotADirectory.into() }),
            Err(source) => Err(Error::File { path: dir.into(), source }),
        }
    }

    /// Writes the bundle under another name, and renames it. It is compressed before, so that this takes no longer than it must.
    pub(super) fn write(&self, files: &Files, at: Timestamp) -> Result<(), Error> {
        let failed = |source| Error::File { path: self.path.clone(), source };
        let mut content = Vec::new();
        bundle::write(&mut content, files, at).map_err(failed)?;
        // Created with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(&self.dir).map_err(failed)?;
        file.write_all(&content).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        let persisted = match self.replace {
            true => file.persist(&self.path),
            false => file.persist_noclobber(&self.path),
        };
        match persisted {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(&self.path)),
            Err(error) => Err(failed(error.error)),
        }
    }
}

fn exists(path: &Path) -> Error {
    let path = path.display();
    Error::Argument(format!(
        "--to: {path} exists already; nothing was written. try: another name, or --yes to replace the file"
    ))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_file_that_is_there_is_replaced_only_if_that_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.tgz");
        let files = Files::from([("bundle.json".to_owned(), b"{}".to_vec())]);
        let late = Target::new(&path, false).unwrap();
        Target::new(&path, false).unwrap().write(&files, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let written = fs::read(&path).unwrap();
        let said = late.write(&files, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(said.exit_code(), 2, "{said}");
        assert!(matches!(Target::new(&path, false), Err(Error::Argument(_))));
        fs::write(&path, "old").unwrap();
        Target::new(&path, true).unwrap().write(&files, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(fs::read(&path).unwrap(), written);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else stays");
        assert!(matches!(Target::new(dir.path(), true), Err(Error::Argument(_))));
        assert!(matches!(Target::new(&path.join("x"), false), Err(Error::File { .. })));
        assert!(matches!(Target::new(&dir.path().join("no/x"), false), Err(Error::File { .. })));
    }
}
