//! `KUBERNETES_BINARIES`: a place that has built programs, a folder or a URL with the layout of the Kubernetes project's
//! release downloads, `v1.2.3/bin/linux/amd64/kube-apiserver` and `kube-apiserver.sha256` beside it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use http::Uri;

use super::{
    Error, Tool,
    download::Download,
    lock::lock,
    module::{KUBERNETES, MODULE},
};
use crate::image;

/// A place that has built programs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Binaries {
    /// A directory with the layout of the downloads, or with the programs themselves.
    Folder(PathBuf),
    /// A server.
    Url(String),
}

impl Binaries {
    /// Reads the value of the variable.
    pub(super) fn parse(value: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Place { value: value.to_owned(), why: why.to_owned() };
        if let Some((scheme, _)) = value.split_once("://") {
            let is_url = value.parse::<Uri>().is_ok_and(|url| url.host().is_some());
            return match scheme {
                "http" | "https" if is_url => Ok(Self::Url(value.trim_end_matches('/').to_owned())),
                "http" | "https" => Err(wrong("this is no URL")),
                _ => Err(wrong("a URL begins with https:// or http://")),
            };
        }
        let folder = std::path::absolute(value).map_err(|error| wrong(&error.to_string()))?;
        if folder.is_dir() { Ok(Self::Folder(folder)) } else { Err(wrong("there is no such folder")) }
    }

    /// The programs it has. A URL has all that Kubernetes publishes: it is an error if one is not there.
    pub(super) async fn provide(
        &self,
        tools: &[Tool],
        cache: &Path,
        progress: &impl Fn(&str),
    ) -> Result<Vec<(Tool, PathBuf)>, Error> {
        match self {
            Self::Folder(folder) => tools
                .iter()
                .filter_map(|tool| Some(in_folder(folder, *tool)?.map(|path| (*tool, path))))
                .collect(),
            Self::Url(url) => download(url, tools, cache, progress).await,
        }
    }
}

/// The path of a program below the folder or URL.
fn published(tool: Tool) -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/bin/linux/{architecture}/{}", MODULE.version(KUBERNETES), tool.name())
}

/// The program in a folder, with the right checksum if there is one beside it.
fn in_folder(folder: &Path, tool: Tool) -> Option<Result<PathBuf, Error>> {
    let candidates = [folder.join(published(tool)), folder.join(tool.name())];
    let path = candidates.into_iter().find(|path| path.is_file())?;
    let checksums = path.with_added_extension("sha256");
    let verified = match fs::read_to_string(&checksums) {
        Ok(checksum) => {
            verify(&path, &path.display().to_string(), &checksum, &checksums.display().to_string())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::cache(checksums)(error)),
    };
    Some(verified.map(|()| path))
}

/// Downloads what an earlier run has not.
async fn download(
    url: &str,
    tools: &[Tool],
    cache: &Path,
    progress: &impl Fn(&str),
) -> Result<Vec<(Tool, PathBuf)>, Error> {
    let tools: Vec<_> = tools.iter().copied().filter(|tool| tool.is_published()).collect();
    // Another place may have other programs.
    let dir =
        cache.join(format!("download-{:.12}", image::digest_of_text(url))).join(MODULE.version(KUBERNETES));
    fs::create_dir_all(&dir).map_err(Error::cache(&dir))?;
    let _lock = lock(&dir, progress).await?;
    let mut found = Vec::new();
    for tool in tools {
        let path = dir.join(tool.name());
        if !path.is_file() {
            let from = format!("{url}/{}", published(tool));
            fetch(&from, &path, tool, progress).await?;
        }
        found.push((tool, path));
    }
    Ok(found)
}

/// One program, which has its final name when it is complete and its checksum is right.
async fn fetch(url: &str, path: &Path, tool: Tool, progress: &impl Fn(&str)) -> Result<(), Error> {
    let checksums = format!("{url}.sha256");
    let mut checksum = Vec::new();
    Download::start(&checksums).await?.write_to(&mut checksum, &|_, _| {}).await?;
    let partial = path.with_added_extension("partial");
    let mut file = fs::File::create(&partial).map_err(Error::cache(&partial))?;
    let download = Download::start(url).await?;
    progress(&format!("downloading {url} ({})", mebibytes(download.length())));
    let said = |received, length| {
        progress(&format!("{}: {} MiB of {}", tool.name(), received >> 20, mebibytes(length)));
    };
    download.write_to(&mut file, &said).await?;
    verify(&partial, url, &String::from_utf8_lossy(&checksum), &checksums)?;
    make_executable(&partial).and_then(|()| fs::rename(&partial, path)).map_err(Error::cache(path))
}

fn mebibytes(length: Option<u64>) -> String {
    length.map_or_else(|| "unknown size".to_owned(), |length| format!("{} MiB", length >> 20))
}

fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// `checksum` is what a `.sha256` file holds: the digits, maybe with the file's name behind them.
fn verify(path: &Path, file: &str, checksum: &str, checksums: &str) -> Result<(), Error> {
    let found = image::digest_of_file(path).map_err(Error::cache(path))?;
    let expected = checksum.split_whitespace().next().unwrap_or("nothing").to_ascii_lowercase();
    if found == expected {
        return Ok(());
    }
    let (file, checksums) = (file.to_owned(), checksums.to_owned());
    Err(Error::Checksum { file, checksums, expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_or_a_url() {
        assert_eq!(Binaries::parse("/").unwrap(), Binaries::Folder("/".into()));
        let url = "https://dl.k8s.io";
        assert_eq!(Binaries::parse("https://dl.k8s.io/").unwrap(), Binaries::Url(url.into()));
        for (value, why) in [
            ("ftp://dl.k8s.io", "a URL begins with"),
            ("https://", "no URL"),
            ("/no/such/folder", "no such folder"),
        ] {
            let said = Binaries::parse(value).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("KUBERNETES_BINARIES={value}: ")) && said.contains(why),
                "{said}"
            );
        }
    }

    #[test]
    fn a_folder_may_have_the_layout_of_the_downloads_or_none() {
        let dir = tempfile::TempDir::new().unwrap();
        let folder = |tool| in_folder(dir.path(), tool);
        assert!(folder(Tool::Etcd).is_none());
        fs::write(dir.path().join("etcd"), "etcd").unwrap();
        assert_eq!(folder(Tool::Etcd).unwrap().unwrap(), dir.path().join("etcd"));
        let kubectl = dir.path().join(published(Tool::Kubectl));
        fs::create_dir_all(kubectl.parent().unwrap()).unwrap();
        fs::write(&kubectl, "kubectl").unwrap();
        let checksum = |text: &str| fs::write(kubectl.with_added_extension("sha256"), text).unwrap();
        checksum(&format!("{}  kubectl\n", image::digest_of_text("kubectl")));
        assert_eq!(folder(Tool::Kubectl).unwrap().unwrap(), kubectl);
        checksum(&image::digest_of_text("something else"));
        let said = folder(Tool::Kubectl).unwrap().unwrap_err().to_string();
        assert!(said.contains(&format!("{}.sha256 says", kubectl.display())), "{said}");
    }
}
