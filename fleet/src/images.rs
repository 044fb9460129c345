//! The images that every node has: built here, since there is no registry.

use std::{collections::BTreeMap, path::PathBuf, process::Stdio};

use api::label;
use tokio::process::Command;

use crate::{
    Error, Fleet,
    image::{self, Image},
    layout::Layout,
    node::CONTAINERD_SOCKET,
    packages, program,
    tools::Tool,
};

/// The process that holds a Pod's namespaces.
pub(crate) const PAUSE: &str = "localhost/pause:1";

/// Servers and clients for Pods of tests, see Kubernetes' `test/images/agnhost`: `netexec`, `connect`, `dns-suffix`...
pub fn agnhost() -> String {
    reference(Tool::Agnhost)
}

pub(crate) fn coredns() -> String {
    reference(Tool::Coredns)
}

fn reference(tool: Tool) -> String {
    format!("localhost/{}:{}", tool.name(), tool.version())
}

/// Builds both daemons and loads an image of them into every node. Its name.
///
/// # Errors
/// [`Error::Program`], [`Error::File`], [`Error::NoNode`], [`Error::Image`], [`Error::Keeper`].
pub async fn load_daemons(fleet: &Fleet, name: DaemonImage) -> Result<String, Error> {
    let leader = program::static_path("leader", label::LEADER).await?;
    let member = program::static_path("member", label::MEMBER).await?;
    let reference = match name {
        // What a name without a registry stands for.
        DaemonImage::OfManifests => format!("docker.io/library/{}", cli::objects::DEFAULT_IMAGE),
        DaemonImage::OfContent => {
            let [of_leader, of_member] =
                [&leader, &member].map(|path| image::digest_of_file(path).map_err(Error::file(path)));
            format!("localhost/freeport:{:.12}-{:.12}", of_leader?, of_member?)
        }
    };
    let image = Image { reference, others: vec![member], ..Image::of(leader, "") };
    // Others may do the same at the same time.
    let archive = Layout::new(fleet.dir()).images().join(format!("freeport-{}.tar", std::process::id()));
    image.write(&archive).map_err(Error::file(&archive))?;
    let loaded = fleet.load(std::slice::from_ref(&archive)).await;
    std::fs::remove_file(&archive).map_err(Error::file(&archive))?;
    loaded.map(|()| image.reference)
}

/// What the image of the daemons is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonImage {
    /// As in the Deployments of `manifests/`.
    OfManifests,
    /// By what is in it: a Deployment that names it changes with the daemons.
    OfContent,
}

/// Writes the archives of the images that every node has.
pub(crate) async fn build(
    layout: &Layout,
    tools: &BTreeMap<Tool, PathBuf>,
    progress: &impl Fn(&str),
) -> Result<Vec<PathBuf>, Error> {
    progress("building images");
    let mut images = vec![Image {
        reference: PAUSE.into(),
        ..Image::of(program::static_path("pause", "pause").await?, "1")
    }];
    for tool in [Tool::Coredns, Tool::Agnhost] {
        let program = tools.get(&tool).cloned().unwrap_or_else(|| tool.name().into());
        images.push(Image::of(program, tool.version()));
    }
    let dir = layout.images();
    Layout::make_private_dir(&dir).map_err(Error::file(&dir))?;
    let mut archives = Vec::new();
    for image in images {
        let name = image.program.file_name().unwrap_or_default();
        let archive = dir.join(name).with_added_extension("tar");
        image.write(&archive).map_err(Error::file(&image.program))?;
        archives.push(archive);
    }
    Ok(archives)
}

/// Where the containerd of a machine listens, as seen from outside: by way of /proc the machine's own /run is within
/// reach.
pub(crate) fn socket(machine: u32) -> PathBuf {
    format!("/proc/{machine}/root{CONTAINERD_SOCKET}").into()
}

/// Imports archives into the containerd of the machine with this process id.
pub(crate) async fn import(cluster: &str, machine: u32, archives: &[PathBuf]) -> Result<(), Error> {
    for archive in archives {
        let failed =
            |said: String| Error::Image { cluster: cluster.to_owned(), archive: archive.clone(), said };
        let run = Command::new(packages::program("ctr").map_err(|error| failed(error.to_string()))?)
            .arg("--address")
            .arg(socket(machine))
            .args(["--namespace", "k8s.io", "images", "import"])
            .arg(archive)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = run.await.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
    }
    Ok(())
}
