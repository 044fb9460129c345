//! Commands as users type them, in clusters of a fleet.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
};

use fleet::Fleet;
use tokio::process::Command;

/// Runs these lines with the fleet's kubectl and kubeconfig, and these programs. What they print.
pub async fn shell(fleet: &Fleet, programs: &[PathBuf], commands: &str) -> String {
    let (kubectl, cache) = (fleet.kubectl(), fleet.clusters()[0].dir().join("kubectl-cache"));
    let folders = programs.iter().map(|program| program.parent().unwrap());
    let system = [kubectl.parent().unwrap(), Path::new("/usr/bin"), Path::new("/bin")];
    let path = env::join_paths(folders.chain(system)).unwrap();
    let ran = Command::new("/bin/sh")
        .args(["-ec", commands])
        .envs([("KUBECONFIG", fleet.kubeconfig()), ("KUBECACHEDIR", cache), ("PATH", path.into())])
        .env("NO_PROXY", "10.0.0.0/8")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = ran.await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{commands}\n{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    said
}
