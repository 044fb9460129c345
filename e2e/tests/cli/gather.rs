//! `freeport gather` of a set in which credentials are planted, and what commands answer from the bundle, without a cluster.

use std::{fs, path::Path, process::Command};

use api::{cluster_set::ClusterSet, mcs::ServiceExport};
use e2e::{
    cluster::Cluster,
    waiting::{VOUCHED, within},
};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Event, Secret, Service},
};
use serde_json::{Map, Value, json};

use crate::cli::member_set::{MemberSet, NAME, SYSTEM, alone};

const NS: &str = "gather";

/// Parts of all that is planted. No bundle may hold them.
const NEEDLES: [&str; 6] = [
    "opensesame-0815-planted",
    "planted-signature-of-a-jwt",
    "PLANTEDKEYPLANTEDKEYPLANTEDKEY",
    "planted-kubeconfig-token",
    "planted.bearer.token-1",
    "planted-in-a-url",
];

/// The first of them as appliers keep a Secret in annotations: JSON, compressed by gzip, in base64.
const APPLIED: &str = "H4sIAAAAAAACA6tWys7MS1GyUgpOTS5KLVHSUSouKcrMS3dJLElUsqpWyi9ILCxNBcrnF6TmFacWJ+am6hpYGJrqFuQk5pWkpijV1gIApjeLvUMAAAA=";

/// All that is planted. What has another mark is not cut because of the Secret that holds it, but for the first, which has no looks of its own.
fn credentials(mark: &str) -> [String; 6] {
    let [opaque, jwt, key, kubeconfig, bearer, url] = NEEDLES;
    [
        format!("it is {opaque}"),
        format!("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.{jwt}{mark}"),
        format!("-----BEGIN PRIVATE KEY-----\n{key}{mark}\n-----END PRIVATE KEY-----"),
        format!(
            "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers:\n- name: a\n  user:\n    token: {kubeconfig}{mark}\n"
        ),
        format!("Authorization: Bearer {bearer}{mark}"),
        format!("https://jane:{url}{mark}@example.com/x"),
    ]
}

#[e2e::test]
fn a_bundle_has_no_credential_and_says_without_a_cluster_what_the_clusters_said() {
    alone(async |set| {
        set.join("east").await;
        let clusters = set.clusters;
        let east = set.cluster("east");
        east.create_namespace(NS).await;
        east.exported(NS, "web", &["10.2.0.1"]).await;
        plant(set).await;
        let dir = tempfile::tempdir().unwrap();
        let bundle = dir.path().join("b.tar.gz").display().to_string();
        // West has no such Namespace.
        within(VOUCHED, "FP501 is found", async || {
            let ran = clusters.freeport(&format!("why {NS}/web --from west {ALL}")).await;
            if ran.stdout.contains(" FP501 ") { Ok(()) } else { Err(ran.to_string()) }
        })
        .await;
        // `check` reads it on the ClusterSet, which the member writes later.
        within(VOUCHED, "FP501 is on the ClusterSet", async || {
            let ran = clusters.freeport(&format!("check {ALL} -o short")).await;
            if ran.stdout.contains("FP501") { Ok(()) } else { Err(ran.to_string()) }
        })
        .await;

        let before = clusters.written_by_people("west").await;
        let ran = clusters.freeport(&format!("gather --to {bundle} {ALL}")).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran}");
        for part in ["east: ", "west: ", "leader: ", "no logs and metrics", "wrote "] {
            assert!(ran.stderr.contains(part), "{part}: {ran}");
        }
        assert_eq!(clusters.written_by_people("west").await, before);
        nothing_planted_is_in(set, &bundle, dir.path()).await;

        let again = format!("gather --to {bundle} {ALL}");
        clusters.freeport(&again).await.misused(&[&bundle, "exists already", "--yes"]);
        the_same_is_said(set, &bundle).await;
        refused(set, &bundle, dir.path()).await;
        versions(set).await;

        set.cluster("west").delete::<Secret>(SYSTEM, "planted").await;
        let patch = json!({"metadata": {"annotations": {"planted": null}}});
        set.cluster("west").patch::<ClusterSet>(SYSTEM, NAME, &patch).await;
        east.release_namespace(NS).await;
    });
}

const ALL: &str = "--contexts west,east --leader-context leader";

fn base64(bytes: &[u8]) -> String {
    json!(ByteString(bytes.to_vec())).as_str().unwrap().to_owned()
}

/// Plants everything in a Secret, and, plain and as base64, in annotations and in a message.
async fn plant(set: &MemberSet) {
    let (east, west) = (set.cluster("east"), set.cluster("west"));
    let keys = ["opaque", "jwt", "key", "kubeconfig", "header", "url"];
    let mut held: Map<String, Value> =
        keys.into_iter().zip(credentials("S")).map(|(key, held)| (key.to_owned(), held.into())).collect();
    held.insert("alone".into(), NEEDLES[0].into());
    let applied = json!({"objectset.rio.cattle.io/applied": APPLIED});
    let metadata = json!({"name": "planted", "annotations": applied, "labels": {"planted": "yes"}});
    let _: Secret = west.create(SYSTEM, json!({"metadata": metadata, "stringData": held})).await;
    let annotations = keys.into_iter().zip(credentials("A")).flat_map(|(key, held)| {
        let encoded = base64(held.as_bytes());
        [(format!("example.com/{key}"), held.into()), (format!("example.com/{key}-64"), encoded.into())]
    });
    let applied = [("example.com/applied".to_owned(), Value::from(APPLIED))];
    let annotations: Map<String, Value> = annotations.chain(applied).collect();
    let annotated = json!({"metadata": {"annotations": annotations}});
    east.patch::<ServiceExport>(NS, "web", &annotated).await;
    east.patch::<Service>(NS, "web", &annotated).await;
    let all = base64(credentials("A").join("\n").as_bytes());
    west.patch::<ClusterSet>(SYSTEM, NAME, &json!({"metadata": {"annotations": {"planted": all}}})).await;
    let [opaque, jwt, key, _, bearer, url] = credentials("A");
    told(east, &[opaque, jwt, key, url, bearer].join(" and ")).await;
}

/// An Event with this message, as a daemon writes them.
async fn told(cluster: &Cluster, message: &str) {
    let about = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "namespace": NS, "name": "web"});
    let event = json!({
        "metadata": {"name": "web.planted"}, "involvedObject": about, "reason": "Planted", "message": message,
        "source": {"component": "freeport-member"}, "type": "Normal",
    });
    let _: Event = cluster.create(NS, event).await;
}

/// A text, and base64 of it wherever it begins in what was encoded.
fn forms(needle: &str) -> Vec<String> {
    let shifted = |shift: usize| {
        let bytes: Vec<u8> = std::iter::repeat_n(b' ', shift).chain(needle.bytes()).collect();
        let text = base64(&bytes);
        let whole = text.trim_end_matches('=');
        whole[(shift * 8).div_ceil(6)..whole.len() - 1].to_owned()
    };
    [needle.to_owned()].into_iter().chain((0..3).map(shifted)).collect()
}

async fn nothing_planted_is_in(set: &MemberSet, bundle: &str, dir: &Path) {
    let unpacked = Command::new("tar").arg("-xzf").arg(bundle).arg("-C").arg(dir).status();
    assert!(unpacked.unwrap().success());
    let root = dir.join("freeport-bundle");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for form in NEEDLES.iter().flat_map(|needle| forms(needle)).chain([APPLIED.to_owned()]) {
            assert!(!text.contains(&form), "{form} in {}", file.display());
        }
    }
    let credential = set.cluster("west").api::<Secret>(SYSTEM).get("freeport-leader-demo").await.unwrap();
    let token = String::from_utf8(credential.data.unwrap()["token"].0.clone()).unwrap();
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let secrets = read("clusters/west/api-server/api/v1/namespaces/freeport-system/secrets.json");
    assert!(!secrets.contains(&token) && secrets.contains("\"token\": "), "{secrets}");
    assert!(!secrets.contains("annotations") && secrets.contains("\"planted\": \"yes\""), "{secrets}");
    assert!(secrets.contains("\"planted\"") && secrets.contains("\"kubeconfig\": "), "{secrets}");
    let cut = read("cut.txt");
    for place in [
        "serviceexports.json: items.[gather/web].metadata.annotations.example.com/key-64: private key",
        "serviceexports.json: items.[gather/web].metadata.annotations.example.com/applied: value of a Secret",
        "services.json: items.[gather/web].metadata.annotations.example.com/kubeconfig: ",
        "clustersets.json: items.[freeport-system/demo].metadata.annotations.planted: ",
        "events.json: items.[gather/web.planted].message: token",
    ] {
        assert!(cut.contains(place), "{place}: {cut}");
    }
    assert!(read("missing.txt").contains("west: no logs and metrics"));
    assert!(read("check.txt").contains("FP501"));
    let _: Value = serde_json::from_str(&read("clusters/west/status.json")).unwrap();
}

/// Words of a report without those that change while somebody looks.
fn steady(text: &str) -> String {
    let is_age = |word: &str| {
        let word = word.trim_end_matches([',', ';', ')', '.']);
        word.len() > 1 && word.ends_with(['s', 'm', 'h', 'd']) && word[..1].parse::<u8>().is_ok()
    };
    let line = |line: &str| {
        let words = line.split_whitespace().map(|word| if is_age(word) { "AGE" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Each command says of the bundle, where no kubeconfig is, what it says of the clusters.
async fn the_same_is_said(set: &MemberSet, bundle: &str) {
    let clusters = set.clusters;
    for (command, live, replayed) in [
        (format!("why {NS}/web --from west"), ALL, ""),
        (format!("why {NS}/wbe --from west"), ALL, ""),
        (format!("why {NS}/web --from east"), ALL, ""),
        (format!("why {NS}/web --from west"), "--contexts west,east", "--contexts west,east"),
        ("check".into(), ALL, ""),
        ("get services -A -o name".into(), ALL, ""),
        (format!("get exports -n {NS} -o wide"), "--context east", "--context east"),
        ("get imports -A".into(), ALL, ""),
        ("get clusters".into(), ALL, ""),
        ("get conflicts -A".into(), ALL, ""),
        ("status".into(), "--context west", "--context west"),
        ("status".into(), "--context leader", "--context leader"),
    ] {
        within(VOUCHED, &format!("{command} is the same"), async || {
            let before = clusters.freeport(&format!("{command} {live}")).await;
            clusters.freeport(&format!("gather --yes --to {bundle} {ALL}")).await.succeeded();
            let line = format!("{command} --bundle {bundle} {replayed}");
            let after = clusters.freeport_alone(&line).await;
            let is_same = (before.code, steady(&before.stdout), steady(&before.stderr))
                == (after.code, steady(&after.stdout), steady(&after.stderr));
            if is_same { Ok(()) } else { Err(format!("{before}\n{after}")) }
        })
        .await;
    }
    let well = clusters.freeport_alone(&format!("why {NS}/web --from east --bundle {bundle}")).await;
    assert_eq!(well.code, Some(0), "{well}");
    let found = clusters.freeport_alone(&format!("why {NS}/web --from west --bundle {bundle}")).await;
    assert_eq!(found.code, Some(1), "{found}");
    assert!(found.stdout.contains("FAIL  import     FP501 west has no Namespace gather"), "{found}");
}

/// A bundle that cannot be used is refused in one line, and parts that may not be read are named in the bundle.
async fn refused(set: &MemberSet, bundle: &str, dir: &Path) {
    let clusters = set.clusters;
    let whole = fs::read(bundle).unwrap();
    let short = dir.join("short.tgz").display().to_string();
    fs::write(&short, &whole[..whole.len() - 9]).unwrap();
    clusters.freeport_alone(&format!("status --bundle {short}")).await.refused(&[
        "short.tgz",
        "cut short",
        "try: ",
    ]);
    let unknown = format!("check --bundle {bundle} --contexts north");
    clusters.freeport_alone(&unknown).await.misused(&["\"north\"", "west"]);
    without_rights(set, dir).await;
}

/// Without any right no bundle is written; with one, the bundle names the parts that may not be read.
async fn without_rights(set: &MemberSet, dir: &Path) {
    let clusters = set.clusters;
    let theirs = dir.join("nobody.tgz").display().to_string();
    let gather = format!("gather --to {theirs} --context west --as nobody");
    let ran = clusters.freeport(&gather).await;
    assert!(ran.code == Some(3) && !Path::new(&theirs).exists(), "{ran}");
    let role = "clusterrole gather-namespaces --verb list --resource namespaces";
    let binding = "clusterrolebinding gather-namespaces --clusterrole gather-namespaces --user nobody";
    for object in [role, binding] {
        clusters.kubectl(&format!("--context west create {object}")).await.succeeded();
    }
    // The API server takes a moment to know of a binding.
    within(VOUCHED, "nobody gathers Namespaces", async || {
        let ran = clusters.freeport(&gather).await;
        let is_named = ran.stderr.contains("missing: west: cannot list serviceexports: ");
        if ran.code == Some(0) && is_named { Ok(()) } else { Err(ran.to_string()) }
    })
    .await;
    let listed = clusters.freeport_alone(&format!("get exports -A --bundle {theirs}")).await;
    assert!(listed.stderr.contains("serviceexports of west were not looked at: "), "{listed}");
    for kind in ["clusterrolebinding", "clusterrole"] {
        clusters.kubectl(&format!("--context west delete {kind} gather-namespaces")).await.succeeded();
    }
}

async fn versions(set: &MemberSet) {
    let clusters = set.clusters;
    let said = clusters.freeport(&format!("version -o json {ALL}")).await.succeeded();
    let said: Value = serde_json::from_str(&said).unwrap();
    let of = |context: &str| {
        let all = said["clusters"].as_array().unwrap();
        all.iter().find(|cluster| cluster["context"] == context).unwrap().clone()
    };
    let version = &said["freeport"];
    assert_eq!(
        of("west")["daemons"],
        json!([{"name": "freeport-member", "version": version, "image": null}])
    );
    assert_eq!(of("leader")["daemons"][0]["name"], "freeport-leader");
    assert!(of("west")["crds"].as_array().unwrap().iter().all(|crd| crd["freeport"] == true));
    let members = of("leader")["members"].clone();
    assert!(members.as_array().unwrap().iter().any(|member| member["clusterID"] == "west"), "{members}");
    let alone = clusters.freeport_alone("version").await;
    assert_eq!(alone.code, Some(0), "{alone}");
    assert_eq!(alone.stdout, format!("freeport {}\n", version.as_str().unwrap()));
}
