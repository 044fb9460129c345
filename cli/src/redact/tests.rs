use std::io::Write;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::*;

const JWT: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.c2lnbmF0dXJlLXdpdGgtYnl0ZXM";
const PEM: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBq7QbPLANTEDkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\nAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIBdzCCAR2gAwIBAgIBADAKBggqhkjOPQQDAjAjMSEwHwYDVQQDDBhrM3Mtc2Vy\ndmVyLWNhQDE3MDAwMDAwMDA=\n-----END CERTIFICATE-----";
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {server: https://10.0.0.1:6443}\ncontexts: []\nusers:\n- name: a\n  user:\n    token: planted-token-1\n    client-key-data: UExBTlRFRA==\n";

/// Texts, and what of them must go.
fn credentials() -> Vec<(String, &'static str)> {
    let of = |text: &str, gone: &'static str| (text.to_owned(), gone);
    vec![
        of(JWT, "c2lnbmF0dXJl"),
        of(&format!("level=info token {JWT} was refused"), "c2lnbmF0dXJl"),
        of(PEM, "PLANTED"),
        of(&PEM.replace('\n', "\\n"), "PLANTED"),
        of("-----BEGIN PRIVATE KEY-----\nPLANTED that was cut short", "PLANTED"),
        of(&format!("tls.key: |\n  {}\n", PEM.replace('\n', "\n  ")), "PLANTED"),
        of(KUBECONFIG, "planted-token-1"),
        of(&KUBECONFIG.replace('\n', "\\n"), "planted-token-1"),
        of("    client-key-data: UExBTlRFRFBMQU5URUQ=\n", "UExBTlRFRFBMQU5URUQ"),
        of("user:\n  token: planted\n", "planted"),
        of("  password: correct-horse\n", "correct-horse"),
        of("Authorization: Bearer planted", "planted"),
        of("authorization: Basic dXNlcjpwYXNz\nnext", "dXNlcjpwYXNz"),
        of("{\"Authorization\":[\"Bearer planted.token1\"]}", "planted"),
        of("-H 'Authorization: Negotiate planted'", "planted"),
        of("sent Bearer abcdefghijklmnopqrstuvwxyz", "abcdefgh"),
        of("proxy-authorization=planted1", "planted1"),
        of("GET https://jane:planted@example.com/x", "planted"),
        of("proxy http://user:p@ss1@10.0.0.1:3128", "p@ss1"),
        of("{\"token\":\"planted\",\"x\":1}", "planted"),
        of("{\\\"password\\\":\\\"planted\\\"}", "planted"),
        of("API_TOKEN=planted", "planted"),
        of("export AWS_SECRET_ACCESS_KEY=planted/x", "planted"),
        of("freeport join --token planted --context west", "planted"),
        of("--password=planted", "planted"),
        of("args: [\"--token\", \"planted, too\"]", "planted"),
        of("{\\\"args\\\":[\\\"--token\\\",\\\"planted\\\"]}", "planted"),
        of("['--token',\n  'planted']", "planted"),
        of("args:\n  - --token\n  - planted\n", "planted"),
        of("token=plan", "plan"),
        of("got token: a1b2c3d4e5", "a1b2c3d4e5"),
        of("secret: aB3dE5gH7jK9mN1pQ", "aB3dE5gH7jK9mN1pQ"),
        of("uses ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_"),
        of("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
    ]
}

#[test]
fn what_looks_like_a_credential_is_cut() {
    for (text, gone) in credentials() {
        let (left, cuts) = Redactor::default().text(&text);
        assert!(!left.contains(gone) && !cuts.is_empty(), "{text}\n-> {left}");
    }
}

#[test]
fn base64_of_it_is_cut_however_it_is_written() {
    for (text, _) in credentials() {
        let padded = STANDARD.encode(&text);
        let lines: Vec<_> =
            padded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let twice = STANDARD.encode(&padded);
        for encoded in [
            padded.clone(),
            STANDARD_NO_PAD.encode(&text),
            URL_SAFE_NO_PAD.encode(&text),
            lines.join("\n"),
            lines.join("\n    "),
            lines.join("\\n"),
            twice,
            format!("data:{padded}"),
            format!("\"{padded}\""),
            format!("/etc/x/{padded}"),
        ] {
            let (left, cuts) = Redactor::default().text(&format!("before {encoded} after"));
            let kept = &encoded[8..encoded.len().min(20)];
            assert!(!left.contains(kept) && !cuts.is_empty(), "{text}\n{encoded}\n-> {left}");
            assert!(left.starts_with("before ") && left.ends_with(" after"), "{left}");
        }
    }
}

#[test]
fn what_is_public_stays() {
    for text in [
        CERTIFICATE,
        "uid 7f3c0c8e-6f6e-4a53-9a66-3c9f3d1b2a10, resourceVersion: \"18446744073709551615\"",
        "image: registry.example.com/freeport@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "the API server refused the token: Unauthorized",
        "token: expired. try: freeport join",
        "cannot read Secret freeport-system/freeport-leader-demo: secrets \"freeport-leader-demo\" is forbidden",
        "secret: freeport-leader-demo",
        "automountServiceAccountToken: true",
        "\"tokenExpirationSeconds\": 86400",
        "Bearer authentication is needed",
        "https://10.0.0.1:6443/api/v1/namespaces/shop/services?limit=50",
        "https://[fd46:7265:6570::1]:6443 and mail jane@example.com",
        "rbac.authorization.k8s.io/v1 authorization.k8s.io",
        "web.17f0a3bcd2e4f5a6 shop/antrea-mc-web clusterset-demo-freeport-member-east",
        "10.1.0.0/16,fd46:7265:6570:100::/56 2026-11-30T10:00:00.000000Z",
        "Kurzgeschichten: ein Schlüssel, 鍵, ключ: нет",
    ] {
        assert_eq!(Redactor::default().text(text), (text.to_owned(), vec![]));
        let encoded = STANDARD.encode(text);
        assert_eq!(Redactor::default().text(&encoded).0, encoded, "{text}");
    }
}

#[test]
fn what_secrets_hold_is_cut_wherever_it_is() {
    let mut redactor = Redactor::default();
    redactor.learn("password", b"opensesame-17\n");
    redactor.learn("ca.crt", CERTIFICATE.as_bytes());
    redactor.learn("namespace", b"clusterset-demo-2");
    redactor.learn("server", b"https://10.0.0.1:6443");
    redactor.learn("id", b"east");
    redactor.learn("binary", &[0xff; 32]);
    let encoded = STANDARD.encode("I say opensesame-17 to you");
    let text = format!("said opensesame-17 twice: {encoded}; {CERTIFICATE} clusterset-demo-2 east");
    let (left, cuts) = redactor.text(&text);
    assert_eq!(
        left,
        format!(
            "said [cut: value of a Secret] twice: [cut: value of a Secret]; {CERTIFICATE} clusterset-demo-2 east"
        )
    );
    assert_eq!(cuts.len(), 2);
    assert_eq!(redactor.text("https://10.0.0.1:6443").1, []);
}

#[test]
fn base64_of_what_secrets_hold_is_cut_wherever_it_begins_and_however_short_it_is() {
    for held in ["b3>?b3>?", "a1b2c3d4e", "a1b2c3d4e5", "a1b2c3d4e5f", "a1b2c3d4e5f6", "\u{fe}\u{ff}sesame-1"]
    {
        let mut redactor = Redactor::default();
        redactor.learn("password", held.as_bytes());
        for before in ["", "x", "xy", "xyz"] {
            let text = format!("{before}{held}{before}");
            for encoded in
                [STANDARD.encode(&text), STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)]
            {
                let with = |what: &str| format!("see\\n{what} and x-{what}, {{\"a\":\"{what}\"}}");
                let cut = "[cut: value of a Secret]";
                let left = format!("see\\n{cut} and {cut}, {{\"a\":\"{cut}\"}}");
                assert_eq!(redactor.text(&with(&encoded)).0, left, "{text} {encoded}");
            }
        }
    }
    let mut redactor = Redactor::default();
    let key: Vec<u8> = (200..232).collect();
    redactor.learn("binary", &key);
    redactor.learn("ca.crt", b"a1b2c3d4e5f6");
    assert_eq!(redactor.text(&STANDARD.encode(&key)).0, "[cut: value of a Secret]");
    assert_eq!(redactor.text(&STANDARD.encode("a1b2c3d4e5f6")).1, []);
}

fn compressed(content: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::best());
    to.write_all(content).unwrap();
    to.finish().unwrap()
}

#[test]
fn gzip_in_base64_is_looked_into() {
    let left = |redactor: &Redactor, bytes: &[u8]| redactor.text(&STANDARD.encode(bytes)).0;
    let none = Redactor::default();
    for (text, _) in credentials() {
        let whole = compressed(format!("{text}\n{}", CERTIFICATE.repeat(9)).as_bytes());
        let short = &whole[..whole.len() - 9];
        for bytes in [&whole, short, STANDARD.encode(&whole).as_bytes()] {
            assert!(left(&none, bytes).starts_with("[cut: "), "{text}");
        }
    }
    let mut redactor = Redactor::default();
    redactor.learn("password", b"opensesame-17");
    let applied = json!({"kind": "Secret", "data": {"a": STANDARD.encode("opensesame-17")}}).to_string();
    assert_eq!(left(&redactor, &compressed(applied.as_bytes())), "[cut: value of a Secret]");
    let public = compressed(CERTIFICATE.as_bytes());
    assert_eq!(left(&redactor, &public), STANDARD.encode(&public));
    let most = compressed(&vec![b' '; 1 << 20]);
    assert_eq!(left(&none, &most), STANDARD.encode(&most));
    let more = compressed(&vec![b' '; (1 << 20) + 1]);
    assert_eq!(left(&none, &more), "[cut: compressed, and too long to look through]");
}

#[test]
fn arguments_behind_flags_are_cut_by_the_names_of_flags() {
    let mut pod = json!({"spec": {"containers": [{
        "name": "a",
        "command": ["serve", "--token", "abc", "-password", "opensesame", "--token", "--verbose", "--port", "8080"],
        "args": ["--api-token", "none", "--token-file", "/etc/token", "token", "web", "--password"],
    }]}});
    let cuts = Redactor::default().json(&mut pod);
    let places: Vec<_> = cuts.iter().map(|cut| (cut.place.as_str(), cut.kind)).collect();
    assert_eq!(
        places,
        [("spec.containers.[a].command.2", Kind::Field), ("spec.containers.[a].command.4", Kind::Field)]
    );
    let cut = "[cut: credential by its name]";
    let container = &pod["spec"]["containers"][0];
    let left = json!(["serve", "--token", cut, "-password", cut, "--token", "--verbose", "--port", "8080"]);
    assert_eq!(container["command"], left);
    assert_eq!(container["args"][3], "/etc/token");
    assert_eq!(Redactor::default().json(&mut pod), []);
}

#[test]
fn fields_of_objects_are_cut_by_their_names_and_the_list_says_where() {
    let mut list = json!({"kind": "ServiceList", "items": [{
        "metadata": {"namespace": "shop", "name": "web", "annotations": {
            "example.com/api-token": "abcd", "example.com/secret-name": "freeport-leader-demo",
            "note": format!("a\n{PEM}\nb"),
        }},
        "spec": {
            "env": [{"name": "DB_PASSWORD", "value": "abcd"}, {"name": "MODE", "value": "abcd"}],
            "config": KUBECONFIG, "token": true, "ports": [80],
        },
    }]});
    let cuts = Redactor::default().json(&mut list);
    let places: Vec<_> = cuts.iter().map(|cut| (cut.place.as_str(), cut.kind)).collect();
    assert_eq!(
        places,
        [
            ("items.[shop/web].metadata.annotations.example.com/api-token", Kind::Field),
            ("items.[shop/web].metadata.annotations.note", Kind::Key),
            ("items.[shop/web].spec.config", Kind::Kubeconfig),
            ("items.[shop/web].spec.env.[DB_PASSWORD].value", Kind::Field),
        ]
    );
    let web = &list["items"][0];
    assert_eq!(web["metadata"]["annotations"]["note"], "a\n[cut: private key]\nb");
    assert_eq!(web["metadata"]["annotations"]["example.com/secret-name"], "freeport-leader-demo");
    assert_eq!(web["spec"]["env"][1]["value"], "abcd");
    assert_eq!(web["spec"]["config"], "[cut: kubeconfig]");
}

#[test]
fn lines_are_counted_and_what_was_cut_is_not_cut_again() {
    let text = format!("one\n{PEM}\nthree {JWT}\npassword=planted");
    let (left, cuts) = Redactor::default().text(&text);
    assert_eq!(left, "one\n[cut: private key]\nthree [cut: token]\npassword=[cut: credential by its name]");
    let places: Vec<_> = cuts.iter().map(|cut| cut.place.as_str()).collect();
    assert_eq!(places, ["line 2", "line 6", "line 7"]);
    assert_eq!(Redactor::default().text(&left), (left.clone(), vec![]));
    let open = "password: \"planted\nthe next line \"stays\"";
    assert_eq!(Redactor::default().text(open).0, open.replace("planted", "[cut: credential by its name]"));
}

#[test]
fn nothing_that_is_installed_looks_like_a_credential() {
    for (name, text) in crate::manifests::files().unwrap() {
        // Files for other programs have places for tokens.
        if name.starts_with("join") {
            continue;
        }
        assert_eq!(Redactor::default().text(&text), (text.clone(), vec![]), "{name}");
        for document in text.split("\n---\n") {
            let mut body: Value = serde_yaml::from_str(document).unwrap();
            let before = body.clone();
            assert_eq!(Redactor::default().json(&mut body), [], "{name}");
            assert_eq!(body, before);
        }
    }
}

#[test]
fn any_text_is_read_to_its_end() {
    let line = "QUFB".repeat(20);
    let parts = [
        "é",
        "鍵",
        "token",
        "secret",
        "authorization",
        ":",
        "=",
        "\"",
        "\\\"",
        "\\n",
        "--",
        "://",
        "@",
        "Bearer ",
        "eyJ",
        "eyJh.eyJh.",
        "-----BEGIN ",
        "PRIVATE KEY-----",
        "-----END ",
        &line,
        "\n",
        " ",
    ];
    for first in parts {
        for second in parts {
            for third in parts {
                let text = format!("{first}{second}{third}é");
                let (left, cuts) = Redactor::default().text(&text);
                assert_eq!(left == text, cuts.is_empty(), "{text:?} -> {left:?}");
            }
        }
    }
}
