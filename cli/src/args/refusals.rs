//! Command lines that are refused before any cluster is asked.

use std::io::Write;

use clap::Parser;

use super::*;

/// Contexts of clusters that nobody can reach: a request to one fails with "cannot reach".
const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: west
clusters:
- {name: nowhere, cluster: {server: 'https://127.0.0.1:1'}}
users:
- {name: nobody, user: {token: none}}
contexts:
- {name: leader, context: {cluster: nowhere, user: nobody}}
- {name: west, context: {cluster: nowhere, user: nobody}}
";

async fn refused(line: &str) -> Error {
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(KUBECONFIG.as_bytes()).unwrap();
    let words = ["freeport"].into_iter().chain(line.split_whitespace());
    let path = file.path().to_str().unwrap();
    let args = Args::try_parse_from(words.chain(["--kubeconfig", path])).unwrap();
    match run(args).await {
        Err(error) => error,
        Ok(outcome) => panic!("{line}: {outcome:?}"),
    }
}

async fn says(line: &str, code: u8, parts: &[&str]) {
    let error = refused(line).await;
    let message = error.to_string();
    assert_eq!(error.exit_code(), code, "{line}: {message}");
    assert!(!message.contains('\n'), "{message}");
    for part in parts {
        assert!(message.contains(part), "{line} says {part:?}: {message}");
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_used_end_with_2() {
    let join = "join --leader-context leader --context west --clusterset";
    for (line, parts) in [
        (format!("{join} demo --cluster-id West"), &["--cluster-id", "\"West\""][..]),
        ("plan --unexport svc/web".into(), &["\"svc/web\"", "try: freeport plan"]),
        ("plan -f /nowhere.yaml".into(), &["/nowhere.yaml: ", "try: "]),
        ("export shop".into(), &["\"shop\"", "try: freeport export shop/web"]),
        ("unexport shop/web/x --yes".into(), &["try: freeport unexport shop/web"]),
        (format!("{join} demo --cluster-id a.b.c"), &["--cluster-id", "\"a.b.c\""]),
        (format!("{join} De_mo --cluster-id west"), &["--clusterset", "DNS label"]),
        ("init --clusterset De_mo --cluster-id leader".into(), &["--clusterset", "DNS label"]),
        (
            format!("{join} demo --cluster-id west --leader-server http://leader:6443"),
            &["https://HOST", "--leader-server"],
        ),
        (
            "init --clusterset demo --cluster-id leader --leader-server leader:6443".into(),
            &["https://HOST", "--leader-server"],
        ),
        (
            format!("{join} demo --cluster-id west --dry-run"),
            &["--dry-run", "--only leader", "--only member"],
        ),
        (
            format!("{join} demo --cluster-id west --dry-run --only leader,member"),
            &["--dry-run", "--only leader", "--only member"],
        ),
        (
            "leave --force --cluster-id West --clusterset demo --leader-context leader".into(),
            &["--cluster-id", "\"West\""],
        ),
        (
            format!("{join} demo --cluster-id west --webhook-url https://127.0.0.1:8443/mutate/pod"),
            &["--webhook-url", "add --offload"],
        ),
        (
            format!("{join} demo --cluster-id west --probe off --external out"),
            &["--probe", "start freeport-member with --probe"],
        ),
        ("bind offer D_B --resource a.example.com".into(), &["the template's name", "\"D_B\""]),
        ("bind offer db --resource nothing".into(), &["PLURAL.GROUP"]),
        ("why web".into(), &["\"web\"", "NAMESPACE/NAME", "try: "]),
        ("why shop/web --contexts west,gone".into(), &["there is no context \"gone\"", "leader"]),
        ("leave --force --leader-context leader".into(), &["--force leaves without the leader"]),
        ("leave --force --cluster-id west --clusterset demo".into(), &["where the leader is"]),
    ] {
        Box::pin(says(&line, 2, parts)).await;
    }
}

#[tokio::test]
async fn contexts_that_do_not_exist_are_named_before_any_request() {
    let join = "join --clusterset demo --cluster-id west";
    for (line, parts) in [
        (
            format!("{join} --context north --leader-context leader"),
            ["there is no context \"north\"", "contexts: leader, west"],
        ),
        (format!("{join} --context west --leader-context gone"), ["there is no context \"gone\"", "leader"]),
        (
            "rejoin --contexts west,gone --leader-context leader".into(),
            ["there is no context \"gone\"", "leader"],
        ),
        ("status --context gone".into(), ["there is no context \"gone\"", "leader"]),
        ("dns --context gone".into(), ["there is no context \"gone\"", "leader"]),
    ] {
        Box::pin(says(&line, 2, &parts)).await;
    }
}

#[test]
fn words_that_no_command_has_end_with_2() {
    for line in [
        "join --clusterset demo --cluster-id west --context west",
        "init --clusterset demo",
        "init --clusterset demo --cluster-id leader --only nothing",
        "init --clusterset demo --cluster-id leader -o yaml",
        "leave --cluster-id west",
        "dns --config-map coredns",
        "status --no-such-flag",
        "depart",
    ] {
        let words = ["freeport"].into_iter().chain(line.split_whitespace());
        let error = Args::try_parse_from(words).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().starts_with("error: "), "{error}");
    }
}
