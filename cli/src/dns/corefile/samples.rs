//! Corefiles as distributions install them, and what becomes of them.

use proptest::prelude::*;

use super::*;

const ZONE: &str = "clusterset.local";

const KUBEADM: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
";

/// Without a newline at its end, as `kind` leaves it.
const KIND: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}";

const K3S: &str = "\
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
    }
    hosts /etc/coredns/NodeHosts {
      ttl 60
      reload 15s
      fallthrough
    }
    prometheus :9153
    cache 30
    loop
    reload
    loadbalance
    import /etc/coredns/custom/*.override
    forward . /etc/resolv.conf
}
import /etc/coredns/custom/*.server
";

const EKS: &str = "\
.:53 {
    errors
    health {
        lameduck 5s
      }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
";

const OPENSHIFT: &str = "\
# example
example.com:5353 {
    prometheus 127.0.0.1:9153
    forward . 10.0.0.1 \"10.0.0.2\" {
        policy random
    }
    errors
    cache 900 {
        denial 9984 30
    }
}
.:5353 hostname.bind:5353 {
    bufsize 1232
    errors
    log . {
        class error
    }
    health {
        lameduck 20s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus 127.0.0.1:9153
    forward . /etc/resolv.conf {
        policy sequential
    }
    cache 900 {
        denial 9984 30
    }
    chaos
    reload
}
";

const FLEET: &str = "\
cluster.local:1053 in-addr.arpa:1053 {
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa {
        ttl 5
    }
    loadbalance
}
";

const ALL: [&str; 6] = [KUBEADM, KIND, K3S, EKS, OPENSHIFT, FLEET];

fn added(text: &str) -> String {
    match add(text, ZONE) {
        Ok(Course::Write(with)) => with,
        other => panic!("{other:?}: {text}"),
    }
}

/// The key and the first directives of our block.
fn begins(text: &str) -> Vec<String> {
    let with = added(text);
    let lines = with.lines().skip_while(|line| *line != "# freeport: begin").skip(2);
    lines.take_while(|line| *line != "    errors").map(str::to_owned).collect()
}

#[test]
fn what_every_distribution_has_gets_the_block() {
    for text in ALL {
        let with = added(text);
        assert!(with.starts_with(text), "{with}");
        assert_eq!(add(&with, ZONE), Ok(Course::Leave), "{with}");
        assert_eq!(remove(&with, ZONE), Ok(Course::Write(text.to_owned())), "{with}");
        assert_eq!(remove(text, ZONE), Ok(Course::Leave), "{text}");
        assert_eq!(grammar::blocks(&with).unwrap().len(), grammar::blocks(text).unwrap().len() + 1);
    }
    assert_eq!(begins(KUBEADM), ["clusterset.local:53 {"]);
    assert_eq!(begins(OPENSHIFT), ["clusterset.local:5353 {"]);
    assert_eq!(begins(FLEET), ["clusterset.local:1053 {"]);
}

#[test]
fn users_are_told_of_the_same_block() {
    let docs = include_str!("../../../../docs/dns.md");
    let with = added(KUBEADM);
    let (_, block) = with.split_once("takes them back.\n").unwrap();
    let (block, _) = block.split_once("# freeport: end").unwrap();
    assert!(docs.contains(&format!("```\n{block}```\n")), "{block}");
}

#[test]
fn it_listens_where_the_cluster_is_answered_for() {
    let main = |keys: &str, more: &str| begins(&format!("{keys} {{\n  kubernetes cluster.local\n{more}}}\n"));
    assert_eq!(main(".", ""), ["clusterset.local {"]);
    assert_eq!(main("dns://.", ""), ["clusterset.local {"]);
    assert_eq!(main("dns://.:5300 tls://.:853", ""), ["clusterset.local:5300 {"]);
    assert_eq!(main("cluster.local:53, .:54", ""), ["clusterset.local:53 clusterset.local:54 {"]);
    assert_eq!(main(".:{$PORT}", ""), ["clusterset.local:{$PORT} {"]);
    let bound = "  bind 10.0.0.10 \"eth0\" # here\n  bind lo {\n   except 127.0.0.1\n  }\n";
    assert_eq!(
        main(".:53", bound),
        [
            "clusterset.local:53 {",
            "    bind 10.0.0.10 \"eth0\"",
            "    bind lo {",
            "        except 127.0.0.1",
            "    }"
        ]
    );
    let snippet = "(own) {\n bind 10.0.0.10\n kubernetes cluster.local\n}\na.example:5300 {\n kubernetes a.example\n}\n\
                   .:53 {\n import own\n}\n";
    assert_eq!(begins(snippet), ["clusterset.local:53 {", "    bind 10.0.0.10"]);
    let another = ".:5300 {\n kubernetes corp.example\n}\n";
    assert_eq!(begins(another), ["clusterset.local:5300 {"]);
}

#[test]
fn who_has_the_zone_already_keeps_it() {
    let by_hand = format!("{KUBEADM}\nclusterset.local:53 {{\n    errors\n}}\n");
    let within = KUBEADM.replace(
        "cluster.local in-addr.arpa ip6.arpa {",
        "cluster.local clusterset.local in-addr.arpa {\n multicluster clusterset.local",
    );
    for (text, line, says) in [
        (by_hand.as_str(), 25, "clusterset.local:53"),
        ("dns://ClusterSet.local.:1053, . {\n}\n", 1, "dns://ClusterSet.local.:1053"),
        (within.as_str(), 7, "multicluster clusterset.local"),
    ] {
        let claim = Claim { line, text: says.into() };
        assert_eq!(add(text, ZONE), Ok(Course::Foreign(claim.clone())), "{text}");
        assert_eq!(remove(text, ZONE), Ok(Course::Foreign(claim.clone())), "{text}");
        assert_eq!(super::claim(text, ZONE), Some(claim));
    }
    let twice = format!("{}clusterset.local {{\n}}\n", added(KUBEADM));
    let Err(Error::Twice(_, claim)) = add(&twice, ZONE) else { panic!("{twice}") };
    assert_eq!(claim.line, 35, "where it is beside ours");
    let Ok(Course::Write(_)) = remove(&twice, ZONE) else { panic!("{twice}") };
    for other in
        ["other.local {\n}\n", "# clusterset.local {\n", ". {\n forward clusterset.local 10.0.0.1\n}\n"]
    {
        assert_eq!(super::claim(other, ZONE), None, "{other}");
    }
}

#[test]
fn what_cannot_be_decided_is_said() {
    assert_eq!(add("", ZONE), Err(Error::NoCluster(ZONE.into())));
    assert_eq!(add("tls://. {\n kubernetes cluster.local\n}\n", ZONE), Err(Error::NoCluster(ZONE.into())));
    assert_eq!(add(".:53\nkubernetes cluster.local\n", ZONE), Err(Error::Unreadable(2)));
    let with = added(KUBEADM);
    let broken = with.replace("# freeport: end\n", "");
    assert_eq!((add(&broken, ZONE), remove(&broken, ZONE)), (Err(Error::Marks), Err(Error::Marks)));
    let unreadable = with.replacen(".:53 {", ".:53", 1);
    assert_eq!(remove(&unreadable, ZONE), Ok(Course::Write(KUBEADM.replacen(".:53 {", ".:53", 1))));
}

#[test]
fn the_block_follows_the_port() {
    let moved = added(KUBEADM).replacen(".:53 {", ".:5353 {", 1);
    let with = added(&moved);
    assert!(with.contains("\nclusterset.local:5353 {") && !with.contains("clusterset.local:53 {"), "{with}");
    assert_eq!(remove(&with, ZONE), Ok(Course::Write(KUBEADM.replacen(".:53 {", ".:5353 {", 1))));
}

proptest! {
    #[test]
    fn adding_and_removing_is_as_if_nothing_was(
        which in 0..ALL.len(),
        before in "(# [a-z\"{}]{0,9}\n){0,2}",
        after in "(\r?\n|# [a-z\"{}]{0,9}|\n[a-z]{1,5}\\.example \\{\r?\n\\}){0,3}",
        returns: bool,
    ) {
        let text = format!("{before}{}{after}", ALL[which]);
        let text = if returns { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
        let with = added(&text);
        prop_assert_eq!(add(&with, ZONE), Ok(Course::Leave));
        prop_assert_eq!(remove(&with, ZONE), Ok(Course::Write(text)));
    }
}
