//! Interfaces, addresses and routes by ip(8).

use std::process::Stdio;

use tokio::{io::AsyncWriteExt, process::Command};

use super::Error;
use crate::installed;

/// Runs commands of ip(8), a line each, here or in the network namespace of a process.
pub(super) async fn ip(inside: Option<u32>, lines: &str) -> Result<(), Error> {
    let mut command = match inside {
        None => Command::new("ip"),
        Some(pid) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/proc/{pid}/ns/net")).arg("ip");
            command
        }
    };
    let failed = |said: String| Error::Ip { commands: lines.replace('\n', "; "), said };
    let run = async {
        command.args(["-batch", "-"]).env("PATH", installed::path()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(lines.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = run.await.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(())
}
