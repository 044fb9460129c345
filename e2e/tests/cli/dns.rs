//! `freeport dns` on a cluster with the objects of a CoreDNS, which no node runs: what it shows, does, leaves alone and takes back.

pub(crate) mod server;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;

use self::server::{COREFILE, CUSTOM, NAME, NAMESPACE, Server};
use crate::cli::{clusters::Clusters, member_set::alone};

const BY_HAND: &str = "clusterset.local:53 {\n    errors\n}\n";

#[e2e::test]
fn names_are_given_and_taken_back_to_the_byte() {
    alone(async |set| {
        let server = Server::install(set).await;
        server.is_shown().await;
        server.is_applied().await;
        server.stays_as_it_is().await;
        server.goes_on_after_a_failure().await;
        server.comes_back_where_it_was_undone().await;
        server.leaves_what_users_changed().await;
        server.has_the_file_it_had("no newline at its end").await;
        server.says_what_keeps_it().await;
        server.release().await;
    });
}

#[e2e::test]
fn names_that_somebody_else_gives_stay() {
    alone(async |set| {
        let server = Server::install(set).await;
        server.set_corefile(&format!("{COREFILE}{BY_HAND}")).await;
        server
            .is_left_alone("ConfigMap kube-system/coredns, Corefile, line 18 (`clusterset.local:53`)")
            .await;

        server.set_corefile(COREFILE).await;
        let files = json!({"metadata": {"name": CUSTOM}, "data": {"clusterset.server": BY_HAND}});
        let _: ConfigMap = server.set.cluster("west").create(NAMESPACE, files).await;
        let volume = json!([{"name": "custom", "configMap": {"name": CUSTOM, "optional": true}}]);
        server.change_deployment(&json!({"template": {"spec": {"volumes": volume}}})).await;
        let said = server.freeport("--apply").await.succeeded();
        let elsewhere = "ConfigMap kube-system/coredns-custom, line 1 (`clusterset.local:53`)";
        assert!(said.contains(elsewhere) && said.contains("nothing to do"), "{said}");
        assert_eq!(server.corefile().await, COREFILE);
        server.release().await;
    });
}

#[e2e::test]
fn what_cannot_serve_names_is_refused() {
    alone(async |set| {
        let server = Server::install(set).await;
        let image = "registry.k8s.io/coredns/coredns:v1.11.3";
        server.set_image(image).await;
        for flags in ["", "--apply"] {
            server.freeport(flags).await.refused(&["CoreDNS is 1.11.3", "1.12.2", "update CoreDNS first"]);
        }
        server.set_image("registry.example/dns@sha256:0123").await;
        let said = server.freeport("").await.succeeded();
        assert!(said.contains("does not say its version") && said.contains("next: "), "{said}");

        let named = async |name: &str| server.freeport(&format!("--config-map {name}")).await;
        named("kube-system/nothing").await.refused(&["no ConfigMap kube-system/nothing", "--config-map"]);
        named("kube-system/kube-root-ca.crt").await.refused(&["no key Corefile", "ca.crt", "--config-map"]);
        server.set_corefile("# freeport: begin\n").await;
        for flags in ["--apply", "--remove --apply"] {
            server.freeport(flags).await.refused(&["Corefile: ", "# freeport: end", "are no pair"]);
        }
        server.says_what_to_add_by_hand().await;

        server.set_corefile(COREFILE).await;
        server.set.cluster("west").delete::<Deployment>(NAMESPACE, NAME).await;
        let said = server.freeport("--apply").await.succeeded();
        for part in ["there is no Deployment kube-system/coredns", "next: restart CoreDNS in west"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = server.freeport("--remove --apply").await.succeeded();
        assert!(said.contains("next: restart CoreDNS in west"), "{said}");
        assert_eq!(server.corefile().await, COREFILE);
        server.release().await;
    });
}

/// In a cluster that has never heard of imports.
pub(crate) async fn imports_come_first(clusters: &Clusters) {
    let spoke = clusters.cluster("spoke");
    let config = json!({"metadata": {"name": NAME}, "data": {"Corefile": COREFILE}});
    let _: ConfigMap = spoke.create(NAMESPACE, config).await;
    let missing = "no CRD serviceimports.multicluster.x-k8s.io";
    let shown = clusters.freeport("dns --context spoke").await.succeeded();
    for part in [missing, "+clusterset.local:53 {", "there is no Deployment kube-system/coredns"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    clusters.freeport("dns --context spoke --apply").await.refused(&[missing, "freeport join"]);
    let found = spoke.take::<ConfigMap>(NAMESPACE, NAME).await;
    assert_eq!(found.data.unwrap()["Corefile"], COREFILE);
}

impl Server {
    async fn is_shown(&self) {
        let before = self.versions().await;
        let shown = self.freeport("").await.succeeded();
        for part in [
            "# cluster: west\n",
            "kind: ClusterRoleBinding\n",
            "\n+clusterset.local:53 {\n",
            "west: would restart Deployment kube-system/coredns\n",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("\n-    "), "nothing is taken away: {shown}");
        assert_eq!(shown.lines().last().unwrap(), "next: freeport dns --apply --context west");
        assert_eq!(self.versions().await, before);
    }

    async fn is_applied(&self) {
        assert!(!self.may_watch().await);
        let said = self.freeport("--apply").await.succeeded();
        let order = [
            "west: created ClusterRole coredns-serviceimports",
            "west: created ClusterRoleBinding coredns-serviceimports",
            "west: changed ConfigMap kube-system/coredns: ",
            "west: restarted Deployment kube-system/coredns",
            "west: CoreDNS is rolled out: ",
        ];
        let places = order.map(|line| said.find(line).unwrap_or_else(|| panic!("{line}: {said}")));
        assert!(places.is_sorted(), "{said}");
        assert!(self.may_watch().await);
        let corefile = self.corefile().await;
        assert!(
            corefile.starts_with(COREFILE) && corefile.contains("\nclusterset.local:53 {\n"),
            "{corefile}"
        );
        let template = self.deployment().await.spec.template.metadata.unwrap();
        assert!(template.annotations.unwrap().contains_key("kubectl.kubernetes.io/restartedAt"));
    }

    async fn stays_as_it_is(&self) {
        let before = self.versions().await;
        for flags in ["", "--apply"] {
            let said = self.freeport(flags).await.succeeded();
            let line = "west: CoreDNS has all it needs for clusterset.local: nothing to do\n";
            assert_eq!(said, line, "{flags}");
        }
        assert_eq!(self.versions().await, before);
    }

    /// The Corefile was changed, and then nothing more.
    async fn goes_on_after_a_failure(&self) {
        let none = json!({"metadata": {"annotations": {"multicluster.freeport.dev/dns": null}}});
        let _: Deployment = self.set.cluster("west").patch(NAMESPACE, NAME, &none).await;
        let before = self.corefile().await;
        let said = self.freeport("--apply").await.succeeded();
        assert!(said.starts_with("west: restarted Deployment kube-system/coredns\n"), "{said}");
        assert_eq!(self.corefile().await, before);
    }

    /// By whoever installed CoreDNS.
    async fn comes_back_where_it_was_undone(&self) {
        self.set_corefile(COREFILE).await;
        let said = self.freeport("--apply").await.succeeded();
        for part in ["changed ConfigMap kube-system/coredns: ", "restarted Deployment kube-system/coredns\n"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    async fn leaves_what_users_changed(&self) {
        let edited =
            |text: &str| text.replace("    loop\n", "    log\n") + "example.org:53 {\n    whoami\n}\n";
        self.set_corefile(&edited(&self.corefile().await)).await;
        let said = self.freeport("--apply").await.succeeded();
        assert!(said.contains("nothing to do"), "{said}");
        let shown = self.freeport("--remove").await.succeeded();
        for part in [
            "\n-clusterset.local:53 {\n",
            "west: would delete ClusterRole coredns-serviceimports\n",
            "next: freeport dns --remove --apply --context west\n",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        self.is_taken_back(&edited(COREFILE)).await;
    }

    async fn has_the_file_it_had(&self, end: &str) {
        let text = format!("{COREFILE}# {end}");
        self.set_corefile(&text).await;
        self.freeport("--apply").await.succeeded();
        assert_ne!(self.corefile().await, text);
        self.is_taken_back(&text).await;
    }

    async fn is_taken_back(&self, corefile: &str) {
        let said = self.freeport("--remove --apply").await.succeeded();
        for part in ["west: CoreDNS is rolled out\n", "west: deleted ClusterRole coredns-serviceimports\n"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(self.corefile().await, corefile);
        assert!(!self.may_watch().await);
        assert!(
            !self
                .deployment()
                .await
                .metadata
                .annotations
                .unwrap()
                .contains_key("multicluster.freeport.dev/dns")
        );
        let said = self.freeport("--remove --apply").await.succeeded();
        assert_eq!(said, "west: there is nothing of `freeport dns` to remove\n");
    }

    /// Pods that nobody runs.
    async fn says_what_keeps_it(&self) {
        self.set_corefile(COREFILE).await;
        self.change_deployment(&json!({"replicas": 1})).await;
        let back = "freeport dns --remove --apply --context west";
        let parts = [
            "west: CoreDNS is not rolled out after 10 s: Deployment kube-system/coredns: ",
            ": Pending",
            back,
        ];
        let said = self.freeport("--apply --timeout 10").await.timed_out(&parts);
        assert!(said.contains("west: waiting for CoreDNS: Deployment kube-system/coredns: "), "{said}");
        self.freeport("--apply --timeout 1").await.timed_out(&[back]);
        self.change_deployment(&json!({"replicas": 0})).await;
        self.is_taken_back(COREFILE).await;
    }

    /// To a Corefile that the command does not read.
    async fn says_what_to_add_by_hand(&self) {
        let unusual = COREFILE.replace("    errors\n", "    bind 10.0.0.10\n");
        self.set_corefile(&unusual).await;
        let before = self.versions().await;
        for flags in ["", "--apply"] {
            let said = self.freeport(flags).await.refused(&["Corefile: server block `.:53` has `bind`"]);
            for part in [
                "\nclusterset.local:53 {\n    errors\n    kubernetes clusterset.local {\n",
                "kubectl --context west create clusterrole coredns-serviceimports --verb list,watch",
                "--serviceaccount kube-system:coredns\n",
                "kubectl --context west -n kube-system rollout restart deployment coredns\n",
            ] {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
        let said = self.freeport("--remove --apply").await.succeeded();
        assert_eq!(said, "west: there is nothing of `freeport dns` to remove\n");
        assert_eq!(self.versions().await, before);
    }

    async fn is_left_alone(&self, place: &str) {
        let before = self.versions().await;
        for flags in ["", "--apply"] {
            let said = self.freeport(flags).await.succeeded();
            let line =
                format!("west: {place} has clusterset.local already, not by freeport: nothing to do\n");
            assert_eq!(said, line, "{flags}");
        }
        for flags in ["--remove", "--remove --apply"] {
            let said = self.freeport(flags).await.succeeded();
            assert_eq!(said, format!("west: left {place} as it is: freeport did not write it\n"), "{flags}");
        }
        assert_eq!(self.versions().await, before);
    }
}
