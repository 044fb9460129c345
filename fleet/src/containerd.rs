//! containerd in a cluster's machine: where it listens, its configuration, and what is imported into it.

use std::{
    fmt::Display,
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::{Error, images, installed};

/// Where containerd listens, in the machine.
pub(crate) const SOCKET: &str = "/run/containerd/containerd.sock";

/// Its configuration file, with the CNI configuration in this directory.
pub(crate) fn config(cni: &Path) -> io::Result<String> {
    let plugins = installed::cni_dir().ok_or_else(|| io::Error::other("there are no CNI plugins"))?;
    let text = |value: &dyn Display| serde_json::to_string(&value.to_string());
    Ok(format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = {socket}
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = {pause}
# Where even root may not lower a score.
restrict_oom_score_adj = true
# Profiles would be this machine's, and stay.
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = {plugins}
conf_dir = {conf}
"#,
        socket = text(&SOCKET)?,
        pause = text(&images::PAUSE)?,
        plugins = text(&plugins.display())?,
        conf = text(&cni.display())?,
    ))
}

/// Where the containerd of a machine listens, as seen from outside: by way of /proc the machine's own /run is within
/// reach.
pub(crate) fn socket(machine: u32) -> PathBuf {
    format!("/proc/{machine}/root{SOCKET}").into()
}

/// Imports archives into the containerd of the machine with this process id.
pub(crate) async fn import(cluster: &str, machine: u32, archives: &[PathBuf]) -> Result<(), Error> {
    for archive in archives {
        let failed =
            |said: String| Error::Image { cluster: cluster.to_owned(), archive: archive.clone(), said };
        let run = Command::new(installed::program("ctr").map_err(|error| failed(error.to_string()))?)
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
