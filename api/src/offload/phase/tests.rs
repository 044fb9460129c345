use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

fn entry(phase: &str) -> MappedNamespace {
    MappedNamespace {
        remote_namespace: "shop-west".into(),
        phase: phase.into(),
        ..MappedNamespace::default()
    }
}

/// A selected host with this phase: `A`, `F`, `T`, or `-` for no entry; `s` before it: silent.
fn says(word: &str) -> (Option<MappedNamespace>, bool) {
    let phase = match word.trim_start_matches('s') {
        "A" => Some(ACCEPTED),
        "F" => Some(CREATION_LOOP_BACK_OFF),
        "T" => Some(TERMINATING),
        _ => None,
    };
    (phase.map(entry), word.starts_with('s'))
}

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

/// `+` before the word of a host: it is selected.
fn of(words: &str, is_deleting: bool) -> Summary {
    let said: Vec<_> = words.split(' ').map(|word| (word.starts_with('+'), says(&word[1..]))).collect();
    let hosts = said.iter().enumerate().map(|(at, (selected, (entry, is_silent)))| {
        let desired = selected.then_some("shop-west");
        (format!("c{at}"), Host { desired, entry: entry.as_ref(), is_silent: *is_silent, ..Host::default() })
    });
    summary(&hosts.collect(), is_deleting)
}

fn told(summary: &Summary, cluster: &str) -> Vec<(&'static str, &'static str, String)> {
    let verdicts = summary.clusters.get(cluster).into_iter().flatten();
    verdicts.map(|verdict| (verdict.type_, verdict.status.as_str(), verdict.reason.clone())).collect()
}

#[test]
fn the_phase_follows_the_truth_table() {
    for (words, want) in [
        ("+- +- +-", Phase::InProgress),
        ("+A +A +A", Phase::Ready),
        ("+A +- +A", Phase::InProgress),
        ("+F +F +F", Phase::AllFailed),
        ("+A +F +A", Phase::SomeFailed),
        ("+F +F +-", Phase::SomeFailed),
        ("+A +T +A", Phase::InProgress),
        ("+T", Phase::InProgress),
        ("-- -- --", Phase::NoClusterSelected),
        ("+A -F --", Phase::Ready),
        ("+A -T -A", Phase::Ready),
        ("+F -A --", Phase::AllFailed),
        ("+A +sA", Phase::InProgress),
        ("+F +sF", Phase::SomeFailed),
        ("-sA --", Phase::NoClusterSelected),
    ] {
        assert_eq!(of(words, false).phase, want, "{words}");
        assert_eq!(of(words, true).phase, Phase::Terminating, "{words}");
    }
    assert_eq!(summary(&BTreeMap::new(), false).phase, Phase::NoClusterSelected);
}

#[test]
fn each_cluster_has_its_conditions_in_order() {
    let required = |status, reason: &str| (OFFLOADING_REQUIRED, status, reason.to_owned());
    let ready = |status, reason: &str| (READY, status, reason.to_owned());
    let selected = || required("True", "ClusterSelected");
    let not_selected = || required("False", "ClusterNotSelected");
    for (word, want) in [
        ("+A", vec![selected(), ready("True", "NamespaceCreated")]),
        ("+F", vec![selected(), ready("False", "CreationLoopBackOff")]),
        ("+T", vec![selected(), ready("False", "Terminating")]),
        ("+-", vec![selected(), ready("False", "Creating")]),
        ("+sA", vec![selected(), ready("Unknown", "HostSilent")]),
        ("+s-", vec![selected(), ready("Unknown", "HostSilent")]),
        ("--", vec![not_selected()]),
        ("-s-", vec![not_selected()]),
        ("-T", vec![not_selected(), ready("False", "Terminating")]),
    ] {
        assert_eq!(told(&of(word, false), "c0"), want, "{word}");
    }
}

#[test]
fn a_deletion_goes_through_its_moments() {
    let required = |status, reason: &str| (OFFLOADING_REQUIRED, status, reason.to_owned());
    let ready = |status, reason: &str| (READY, status, reason.to_owned());
    assert_eq!(of("+A", false).phase, Phase::Ready);
    let t1 = of("-A --", true);
    assert_eq!(told(&t1, "c0"), [required("False", "ClusterNotSelected"), ready("True", "NamespaceCreated")]);
    assert!(!t1.clusters.contains_key("c1"), "clusters that were not selected go at once");
    let t2 = of("-T --", true);
    assert_eq!(told(&t2, "c0"), [required("False", "ClusterNotSelected"), ready("False", "Terminating")]);
    assert!(of("-- --", true).clusters.is_empty(), "nothing is left");
    assert!(!of("-sA", true).clusters.is_empty(), "a silent host still has it");
}

#[test]
fn a_host_answers_only_what_it_was_asked_in_its_own_words() {
    let refused = MappedNamespace {
        reason: Some("NotAccepted".into()),
        message: Some("this cluster does not accept west".into()),
        ..entry(CREATION_LOOP_BACK_OFF)
    };
    let later = MappedNamespace { phase: "Later".into(), ..entry("") };
    let other = MappedNamespace { remote_namespace: "kube-system".into(), ..entry(ACCEPTED) };
    let long = MappedNamespace { message: Some("ä".repeat(9000)), ..entry(ACCEPTED) };
    let entries = [("a", &refused), ("b", &later), ("c", &other), ("d", &long)];
    let host = |entry| Host { desired: Some("shop-west"), entry: Some(entry), ..Host::default() };
    let hosts = entries.map(|(cluster, entry)| (cluster.to_owned(), host(entry))).into();
    let summary = summary(&hosts, false);
    let ready = |cluster: &str| summary.clusters[cluster][1].clone();
    let message = "shop-west: NotAccepted: this cluster does not accept west";
    assert_eq!(ready("a").message, message);
    assert_eq!((ready("b").status, ready("b").reason.as_str()), (Status::Unknown, "UnknownPhase"));
    assert!(ready("b").message.contains("Later"));
    assert_eq!(ready("c").reason, "Creating", "of another name than the one asked for");
    assert!(ready("d").message.len() < 1100);
    assert_eq!(summary.phase, Phase::SomeFailed);
}

proptest! {
    #[test]
    fn a_second_pass_says_nothing_new(
        words in prop::collection::vec("[-+]s?[-AFT]", 1..5), is_deleting: bool,
    ) {
        let summary = of(&words.join(" "), is_deleting);
        let first = summary.conditions(&BTreeMap::new(), &at(1));
        prop_assert_eq!(summary.conditions(&first, &at(2)), first);
    }
}

#[test]
fn on_the_way_is_what_may_be_there_any_moment() {
    let entry = |phase: &str| MappedNamespace {
        remote_namespace: "shop-west".into(),
        phase: phase.into(),
        ..MappedNamespace::default()
    };
    let on_the_way = |entries: &[Option<&str>], is_silent| {
        let entries: Vec<_> = entries.iter().map(|phase| phase.map(entry)).collect();
        let host = |(n, entry)| {
            let host = Host { desired: Some("shop-west"), entry, is_silent, ..Host::default() };
            (format!("host-{n}"), host)
        };
        let hosts = entries.iter().map(Option::as_ref).enumerate().map(host).collect();
        summary(&hosts, false).is_on_the_way()
    };
    assert!(on_the_way(&[None], false) && on_the_way(&[None, Some(ACCEPTED)], false));
    assert!(!on_the_way(&[Some(ACCEPTED)], false), "it is there");
    assert!(!on_the_way(&[None], true));
    assert!(!on_the_way(&[None, Some(CREATION_LOOP_BACK_OFF)], false));
    assert!(!on_the_way(&[None, Some(TERMINATING)], false));
    assert!(!on_the_way(&[], false));
}

#[test]
fn a_namespace_for_which_a_map_has_no_room_says_so_at_once() {
    let host = Host { desired: Some("shop-west"), has_no_room: true, ..Host::default() };
    let said = summary(&[("east".to_owned(), host)].into(), false);
    let ready = said.clusters["east"].iter().find(|verdict| verdict.type_ == READY).unwrap();
    assert_eq!((ready.status, ready.reason.as_ref()), (Status::False, "MapFull"));
    assert!(ready.message.contains("2000 Namespaces"), "{}", ready.message);
    assert!(!said.is_on_the_way());
    let asked = entry(ACCEPTED);
    let said = summary(&[("east".to_owned(), Host { entry: Some(&asked), ..host })].into(), false);
    assert_eq!(said.phase, Phase::Ready, "what the host says counts");
}

#[test]
fn twins_alone_are_not_all_that_is_asked_for() {
    let placed = |status| Verdict::new("PlacementEnforced", status, "R", "");
    for (phase, status, want) in [
        (Phase::Ready, Status::True, Phase::Ready),
        (Phase::Ready, Status::Unknown, Phase::Ready),
        (Phase::Ready, Status::False, Phase::PlacementNotEnforced),
        (Phase::InProgress, Status::False, Phase::InProgress),
        (Phase::AllFailed, Status::False, Phase::AllFailed),
        (Phase::Terminating, Status::False, Phase::Terminating),
    ] {
        assert_eq!(phase.with_placement(Some(&placed(status))), want, "{phase:?} {status:?}");
    }
    assert_eq!(Phase::Ready.with_placement(None), Phase::Ready);
}
