//! Container images of static programs, as OCI archives, without a container engine.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// A user ID without rights, which owns nothing on any machine.
const USER: u32 = 65532;
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image that holds statically linked programs and a /tmp, and runs one of them as a user without rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What Pods call it, with a tag. The registry `localhost` does not exist, so no node tries to pull it.
    pub reference: String,
    /// The program; in the image it is at the top, under its own name.
    pub program: PathBuf,
    /// Further programs, beside it.
    pub others: Vec<PathBuf>,
    /// Its arguments if the container specifies none.
    pub args: Vec<String>,
}

impl Image {
    /// An image of this program, called as the program is.
    pub fn of(program: impl Into<PathBuf>, tag: &str) -> Self {
        let program = program.into();
        Self {
            reference: format!("localhost/{}:{tag}", name(&program)),
            program,
            others: Vec::new(),
            args: Vec::new(),
        }
    }

    /// Writes the archive, which `ctr images import`, `podman load` and `docker load` read.
    ///
    /// # Errors
    /// The program cannot be read, or the archive not written.
    pub fn write(&self, archive: &Path) -> io::Result<()> {
        let layer_file = archive.with_added_extension("layer");
        let layer = self.write_layer(&layer_file)?;
        let config = self.config(&layer.digest)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": Blob::of(&config).descriptor(CONFIG),
            "layers": [layer.descriptor(LAYER)],
        });
        let manifest = serde_json::to_vec(&manifest)?;
        let mut of_manifest = Blob::of(&manifest).descriptor(MANIFEST);
        of_manifest["annotations"] = json!({
            "io.containerd.image.name": self.reference,
            "org.opencontainers.image.ref.name": self.reference,
        });
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [of_manifest]});

        let mut tar = Builder::new(io::BufWriter::new(File::create(archive)?));
        append(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        append(&mut tar, "index.json", &serde_json::to_vec(&index)?)?;
        for blob in [&config, &manifest] {
            append(&mut tar, &Blob::of(blob).path(), blob)?;
        }
        let mut header = file_header(0o644, layer.size);
        tar.append_data(&mut header, layer.path(), File::open(&layer_file)?)?;
        tar.into_inner()?.flush()?;
        fs::remove_file(layer_file)
    }

    fn write_layer(&self, path: &Path) -> io::Result<Blob> {
        let mut tar = Builder::new(io::BufWriter::new(File::create(path)?));
        let mut tmp = file_header(0o1777, 0);
        tmp.set_entry_type(EntryType::Directory);
        tar.append_data(&mut tmp, "tmp/", io::empty())?;
        for path in std::iter::once(&self.program).chain(&self.others) {
            let program = File::open(path)?;
            let mut header = file_header(0o755, program.metadata()?.len());
            tar.append_data(&mut header, name(path), program)?;
        }
        tar.into_inner()?.flush()?;
        Blob::of_file(path)
    }

    fn config(&self, layer: &str) -> io::Result<Vec<u8>> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Ok(serde_json::to_vec(&json!({
            "architecture": architecture,
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Entrypoint": [format!("/{}", name(&self.program))],
                "Cmd": self.args,
                "WorkingDir": "/",
                "Env": ["PATH=/"],
            },
            "rootfs": {"type": "layers", "diff_ids": [layer]},
        }))?)
    }
}

fn name(program: &Path) -> String {
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Content, named by its digest.
struct Blob {
    digest: String,
    size: u64,
}

impl Blob {
    fn of(content: &[u8]) -> Self {
        Self { digest: digest(Sha256::digest(content)), size: content.len() as u64 }
    }

    fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(Self { digest: digest(hash.finalize()), size }),
                read => {
                    hash.update(&buffer[..read]);
                    size += read as u64;
                }
            }
        }
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": self.digest, "size": self.size})
    }
}

/// SHA-256 of a file's content, in hexadecimal digits.
pub(crate) fn digest_of_file(path: &Path) -> io::Result<String> {
    Ok(Blob::of_file(path)?.digest.trim_start_matches("sha256:").to_owned())
}

/// The same of a text.
pub(crate) fn digest_of_text(text: &str) -> String {
    Blob::of(text.as_bytes()).digest.trim_start_matches("sha256:").to_owned()
}

fn digest(hash: impl IntoIterator<Item = u8>) -> String {
    let hex: String = hash.into_iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn append(tar: &mut Builder<impl Write>, path: &str, content: &[u8]) -> io::Result<()> {
    tar.append_data(&mut file_header(0o644, content.len() as u64), path, content)
}

/// Without times and names: the same content is the same image.
fn file_header(mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(mode);
    header.set_size(size);
    header
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn files(archive: impl Read) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().to_string_lossy().into_owned(), content)
        });
        entries.collect()
    }

    #[test]
    fn archive_leads_from_index_to_program() {
        let dir = tempfile::TempDir::new().unwrap();
        let program = dir.path().join("hello");
        fs::write(&program, "not really a program").unwrap();
        let other = dir.path().join("bye");
        fs::write(&other, "nor this").unwrap();
        let image = Image { others: vec![other], args: vec!["world".into()], ..Image::of(&program, "1") };
        assert_eq!(image.reference, "localhost/hello:1");
        let archive = dir.path().join("hello.tar");
        image.write(&archive).unwrap();
        let first = fs::read(&archive).unwrap();
        image.write(&archive).unwrap();
        assert_eq!(fs::read(&archive).unwrap(), first, "the same content is the same image");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);

        let files = files(first.as_slice());
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let content = &files[&format!("blobs/{}", digest.replace(':', "/"))];
            assert_eq!(
                (content.len() as u64, digest),
                (descriptor["size"].as_u64().unwrap(), &*Blob::of(content).digest)
            );
            content.clone()
        };
        let json = |content: &[u8]| serde_json::from_slice::<Value>(content).unwrap();
        let index = json(&files["index.json"]);
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "localhost/hello:1");
        let manifest = json(&blob(&index["manifests"][0]));
        let config = json(&blob(&manifest["config"]));
        assert_eq!(config["config"]["Entrypoint"], json!(["/hello"]));
        assert_eq!(config["config"]["Cmd"], json!(["world"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        let layer = self::files(blob(&manifest["layers"][0]).as_slice());
        assert_eq!((&*layer["hello"], &*layer["bye"]), (&b"not really a program"[..], &b"nor this"[..]));
        assert_eq!(layer.keys().collect::<Vec<_>>(), ["bye", "hello", "tmp/"], "no shell, nothing else");
    }

    #[test]
    fn dockerfile_makes_the_same() {
        let dockerfile = include_str!("../../Dockerfile");
        let toolchain = include_str!("../../rust-toolchain.toml");
        let version = toolchain.split('"').nth(1).unwrap().trim_end_matches(".0");
        for part in [
            format!("USER {USER}:{USER}\n"),
            format!("docker.io/library/rust:{version}-"),
            "-C target-feature=+crt-static".to_owned(),
            "/freeport-leader\" ".to_owned(),
            "/freeport-member\" ".to_owned(),
            "/freeport-webhook\" ".to_owned(),
            "--mode 1777 /image/tmp".to_owned(),
            "\nFROM scratch\n".to_owned(),
        ] {
            assert!(dockerfile.contains(&part), "{part}");
        }
    }
}
