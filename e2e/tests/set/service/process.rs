//! The daemons as processes.

use std::process::Stdio;

use fleet::program;
use tokio::process::Command;

use e2e::fixture::shared;

#[e2e::test(real)]
fn a_wrong_flag_or_file_is_one_clear_line_and_exit_code_2() {
    shared(async |_| {
        for (package, name) in [("leader", "freeport-leader"), ("member", "freeport-member")] {
            let daemon = program::path(package, name).await.unwrap();
            let run = async |args: &[&str]| {
                let output = Command::new(&daemon).args(args).stdin(Stdio::null()).output().await.unwrap();
                (output.status.code(), String::from_utf8(output.stderr).unwrap())
            };
            let (code, said) = run(&["--listen", "nowhere"]).await;
            assert_eq!(code, Some(2));
            assert!(said.contains("--listen") && said.contains("nowhere"), "{said}");
            let (code, said) = run(&["--log-level", "loud"]).await;
            assert_eq!(code, Some(2));
            assert!(said.contains("--log-level") && said.contains("info"), "{said}");
            let (code, said) = run(&["--config", "/nowhere"]).await;
            assert_eq!(code, Some(2));
            assert!(said.contains("/nowhere"), "{said}");
            let (code, _) = run(&["--kubeconfig", "/nowhere", "--listen", "127.0.0.1:0"]).await;
            assert_eq!(code, Some(1), "right flags, wrong world");
            let (code, _) = run(&["--help"]).await;
            assert_eq!(code, Some(0));
        }
    });
}
