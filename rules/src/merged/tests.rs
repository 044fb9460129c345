use api::mcs::{ServiceImportType, ServicePort};
use k8s_openapi::api::core::v1::{self as core, ClientIPConfig, ServicePort as CorePort, ServiceSpec};
use proptest::prelude::*;

use super::*;

/// `web 80/TCP`, `80`, `dns 53/UDP`.
fn port(text: &str) -> CorePort {
    let (name, number) = text.rsplit_once(' ').unwrap_or(("", text));
    let (number, protocol) = number.split_once('/').unwrap_or((number, "TCP"));
    CorePort {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        protocol: Some(protocol.into()),
        port: number.parse().unwrap(),
        ..CorePort::default()
    }
}

fn export(ports: &[&str]) -> ServicePayload {
    let spec = ServiceSpec {
        ports: Some(ports.iter().map(|text| port(text)).collect()),
        ip_families: Some(vec!["IPv4".into()]),
        ..ServiceSpec::default()
    };
    ServicePayload { service_spec: spec, ..ServicePayload::default() }
}

fn with(change: impl FnOnce(&mut ServicePayload)) -> ServicePayload {
    let mut payload = export(&["web 80"]);
    change(&mut payload);
    payload
}

fn named(exports: &[ServicePayload]) -> Vec<Exported<'_>> {
    ["a", "b", "c", "d", "e"].into_iter().zip(exports).collect()
}

fn ports(exports: &[ServicePayload]) -> Vec<String> {
    let merged = merged(&named(exports)).unwrap();
    let word = |port: &ServicePort| {
        let name = port.name.as_deref().map(|name| format!("{name} ")).unwrap_or_default();
        format!("{name}{}/{}", port.port, port.protocol.as_deref().unwrap())
    };
    merged.spec.ports.iter().map(word).collect()
}

/// Reasons told to each exporter.
fn reasons(exports: &[ServicePayload]) -> Vec<Vec<String>> {
    let told = conflicts(&named(exports));
    told.into_iter().map(|told| told.into_iter().map(|objection| objection.reason).collect()).collect()
}

#[test]
fn r40_ports_are_united_by_name_and_then_by_number() {
    let one = || export(&["web 80", "dns 53/UDP"]);
    assert_eq!(
        ports(&[one(), export(&["web 8080", "admin 9000"])]),
        ["dns 53/UDP", "web 80/TCP", "admin 9000/TCP"]
    );
    assert_eq!(
        ports(&[one(), export(&["http 80"])]),
        ["dns 53/UDP", "web 80/TCP"],
        "the same number and protocol"
    );
    assert_eq!(ports(&[one(), export(&["http 80/UDP"])]), ["dns 53/UDP", "web 80/TCP", "http 80/UDP"]);
    assert_eq!(ports(&[export(&["80"]), export(&["81"])]), ["80/TCP"], "no name is a name");
    assert_eq!(ports(&[export(&["80"]), export(&["web 81"])]), ["p80 80/TCP", "web 81/TCP"]);
}

#[test]
fn r41_any_difference_of_ports_is_told_to_all_and_their_order_is_none() {
    let more = [export(&["web 80"]), export(&["web 80", "admin 9000"]), export(&["web 80"])];
    assert_eq!(reasons(&more), vec![vec!["PortConflict"]; 3]);
    let reordered = [export(&["web 80", "dns 53/UDP"]), export(&["dns 53/UDP", "web 80"])];
    assert_eq!(reasons(&reordered), vec![vec![""; 0]; 2]);
    let with_protocol = with(|payload| {
        payload.service_spec.ports.as_mut().unwrap()[0].app_protocol = Some("http".into());
    });
    assert_eq!(reasons(&[export(&["web 80"]), with_protocol]), vec![vec!["PortConflict"]; 2]);
}

#[test]
fn r37_everyone_is_told_what_wins_whose_it_is_how_many_disagree_and_where_they_stand() {
    let sticky = with(|payload| payload.service_spec.session_affinity = Some("ClientIP".into()));
    let told = conflicts(&named(&[export(&["web 80"]), sticky, export(&["web 80"])]));
    let says = |who: usize| told[who][0].message.as_str();
    let rule =
        "sessionAffinity is \"None\", as in cluster a, the oldest export; cluster b disagrees (1 of 3); ";
    assert_eq!(says(0), format!("{rule}this export agrees with it"));
    assert_eq!(says(1), format!("{rule}in this export it is \"ClientIP\""));

    let told = conflicts(&named(&[export(&["web 80"]), export(&["web 8080", "http 80"])]));
    assert_eq!(
        told[1][0].message,
        "ports: the Service has the ports of all exports; where two ports have the same name or number, it has the port of the \
         older export (cluster a has the oldest export): web 80/TCP; cluster b disagrees (1 of 2); this export has http 80/TCP, \
         web 8080/TCP; clients cannot reach web 8080/TCP"
    );
}

#[test]
fn r37_a_value_that_is_not_set_is_said_to_be_so() {
    let near = with(|payload| payload.service_spec.traffic_distribution = Some("PreferSameNode".into()));
    let labelled = with(|payload| drop(payload.exported_labels.insert("a".into(), "b".into())));
    let told = |oldest: &ServicePayload, other: &ServicePayload| {
        let told = conflicts(&named(&[oldest.clone(), other.clone()]));
        [told[0][0].message.clone(), told[1][0].message.clone()]
    };
    let rule =
        "trafficDistribution is not set, as in cluster a, the oldest export; cluster b disagrees (1 of 2); ";
    let sides = ["this export agrees with it", "in this export it is \"PreferSameNode\""];
    assert_eq!(told(&export(&["web 80"]), &near), sides.map(|side| format!("{rule}{side}")));
    let [_, without] = told(&labelled, &export(&["web 80"]));
    assert_eq!(
        without,
        "exportedLabels is a=\"b\", as in cluster a, the oldest export; cluster b disagrees (1 of 2); in this export it is not set"
    );
}

#[test]
fn r34_r45_r46_r47_the_oldest_export_wins_all_that_cannot_be_united() {
    type Change = fn(&mut ServicePayload);
    let changes: [(&str, Change); 8] = [
        ("TypeConflict", |payload| payload.service_spec.cluster_ip = Some("None".into())),
        ("SessionAffinityConflict", |payload| {
            payload.service_spec.session_affinity = Some("ClientIP".into())
        }),
        ("SessionAffinityConfigConflict", |payload| {
            let client_ip = Some(ClientIPConfig { timeout_seconds: Some(60) });
            payload.service_spec.session_affinity_config = Some(core::SessionAffinityConfig { client_ip });
        }),
        ("InternalTrafficPolicyConflict", |payload| {
            payload.service_spec.internal_traffic_policy = Some("Local".into())
        }),
        ("TrafficDistributionConflict", |payload| {
            payload.service_spec.traffic_distribution = Some("PreferSameNode".into());
        }),
        ("IPFamilyConflict", |payload| {
            payload.service_spec.ip_families = Some(vec!["IPv4".into(), "IPv6".into()])
        }),
        ("LabelsConflict", |payload| drop(payload.exported_labels.insert("a".into(), "b".into()))),
        ("AnnotationsConflict", |payload| drop(payload.exported_annotations.insert("a".into(), "b".into()))),
    ];
    for (reason, change) in changes {
        let (plain, changed) = (export(&["web 80"]), with(change));
        for pair in [[plain.clone(), changed.clone()], [changed.clone(), plain.clone()]] {
            assert_eq!(reasons(&pair), vec![vec![reason]; 2]);
            let alone = merged(&named(&pair[..1])).unwrap();
            let both = merged(&named(&pair)).unwrap();
            if reason == "IPFamilyConflict" {
                assert_eq!(both.spec.ip_families, ["IPv4"], "what both have");
            } else {
                assert_eq!(both, alone, "{reason}");
            }
        }
    }
    let all = with(|payload| changes.iter().for_each(|(_, change)| change(payload)));
    let told = reasons(&[export(&["dns 53/UDP"]), all]);
    assert_eq!(told[0].len(), 9, "all at once: {told:?}");
}

#[test]
fn r29_r46_what_means_the_same_is_no_conflict_and_is_passed_on_as_it_is() {
    let said = with(|payload| {
        payload.service_spec.session_affinity = Some("None".into());
        payload.service_spec.internal_traffic_policy = Some("Cluster".into());
    });
    assert_eq!(reasons(&[export(&["web 80"]), said.clone()]), vec![vec![""; 0]; 2]);
    assert_eq!(merged(&named(&[said])).unwrap().spec.session_affinity.as_deref(), Some("None"));
    let close = |value: &str| with(|payload| payload.service_spec.traffic_distribution = Some(value.into()));
    let pair = [close("PreferClose"), close("PreferSameZone")];
    assert_eq!(reasons(&pair), vec![vec![""; 0]; 2]);
    assert_eq!(
        merged(&named(&pair)).unwrap().spec.traffic_distribution.as_deref(),
        Some("PreferClose"),
        "R-29"
    );
}

#[test]
fn r40_an_unnamed_port_beside_others_gets_a_name() {
    let names = |exports: &[ServicePayload]| {
        let ports = merged(&named(exports)).unwrap().spec.ports;
        ports.into_iter().map(|port| port.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[export(&[" 80"])]), [None], "alone it needs none");
    let taken = export(&["p80 8080", "web 81"]);
    assert_eq!(
        names(&[export(&[" 80"]), taken]),
        [Some("p80-2".to_owned()), Some("web".into()), Some("p80".into())]
    );
}

#[test]
fn ports_of_exports_that_are_refused_are_united_like_others() {
    let of = |cluster: &str, ports: &[&str]| Exporter {
        cluster_id: cluster.into(),
        ports: Some(ports_of(&export(ports))),
        ..Exporter::default()
    };
    let oldest = merged(&named(&[export(&["web 80", "gone 7"])])).unwrap();
    let both = with_ports_of(oldest, &[of("a", &["web 80"]), of("b", &["web 81", "admin 90", " 91"])]);
    let ports = both.spec.ports.iter().map(|port| (port.name.as_deref().unwrap(), port.port));
    assert_eq!(ports.collect::<Vec<_>>(), [("web", 80), ("admin", 90), ("p91", 91)]);
}

#[test]
fn a2_a_service_has_no_more_ports_than_importers_can_have() {
    let exports: Vec<_> = (0..4)
        .map(|exporter| {
            let ports: Vec<_> =
                (1..=100).map(|n| format!("p{exporter}-{n} {}", exporter * 100 + n)).collect();
            export(&ports.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .collect();
    let ports = ports(&exports);
    assert_eq!((ports.len(), ports.last().unwrap().as_str()), (250, "p2-50 250/TCP"), "those of the oldest");
    let told = conflicts(&named(&exports));
    assert!(told[3][0].message.contains("clients cannot reach"), "{:?}", told[3]);
}

#[test]
fn r38_r48_families_are_those_that_all_have_and_the_oldest_ones_first_stays() {
    let has = |families: &[&str]| {
        with(|payload| {
            payload.service_spec.ip_families = Some(families.iter().map(|f| (*f).into()).collect())
        })
    };
    let families = |exports: &[ServicePayload]| merged(&named(exports)).unwrap().spec.ip_families;
    assert_eq!(families(&[has(&["IPv6", "IPv4"]), has(&["IPv4", "IPv6"])]), ["IPv6", "IPv4"]);
    assert_eq!(families(&[has(&["IPv4"]), has(&["IPv6"]), has(&["IPv4"])]), ["IPv4"]);
    assert_eq!(
        families(&[has(&["IPv4", "IPv6"]), has(&["IPv6"])]),
        ["IPv4", "IPv6"],
        "the first one stays (R-38)"
    );
    assert_eq!(families(&[has(&["IPv4", "IPv6"]), has(&["IPv6"]), has(&["IPv4"])]), ["IPv4"]);
    assert_eq!(families(&[has(&[]), has(&["IPv6", "IPv4"])]), ["IPv4"], "who says nothing means IPv4");
    assert_eq!(reasons(&[has(&[]), has(&["IPv4"])]), vec![vec![""; 0]; 2]);
    assert_eq!(reasons(&[has(&["IPv4", "IPv6"]), has(&["IPv6", "IPv4"])]), vec![vec![""; 0]; 2], "as sets");
    let told = conflicts(&named(&[has(&["IPv4", "IPv6"]), has(&["IPv4"]), has(&["IPv6"])]));
    let used = "ipFamilies: IPv4 is used: the first IP family of cluster a, the oldest export, always; its second one only while \
                every other export that has the first also has the second; clusters b, c disagree (2 of 3); ";
    let sides = [
        "this export has IPv4, IPv6",
        "this export agrees with it",
        "this export has IPv6; clients cannot reach it",
    ];
    for (told, side) in told.iter().zip(sides) {
        assert_eq!(
            (told[0].reason.as_str(), told[0].message.clone()),
            ("IPFamilyConflict", format!("{used}{side}"))
        );
    }
}

#[test]
fn no_endpoint_of_a_headless_import_goes_for_what_others_lack() {
    let has = |families: &[&str]| {
        with(|payload| {
            payload.service_spec.cluster_ip = Some("None".into());
            payload.service_spec.ip_families = Some(families.iter().map(|f| (*f).into()).collect());
        })
    };
    let exports = [has(&["IPv4"]), has(&["IPv6", "IPv4"])];
    assert_eq!(merged(&named(&exports)).unwrap().spec.ip_families, ["IPv4", "IPv6"]);
    let told = conflicts(&named(&exports)).remove(0).remove(0);
    assert_eq!(
        told.reason, "IPFamilyConflict",
        "whom a client reaches depends on its family all the same (R-48)"
    );
    assert!(told.message.contains("for the endpoints that have it: IPv4, IPv6"), "{}", told.message);
}

#[test]
fn r44_the_oldest_export_decides_whether_the_import_is_headless() {
    let headless = with(|payload| payload.service_spec.cluster_ip = Some("None".into()));
    let plain = export(&["web 80", "admin 90"]);
    let type_of = |exports: &[ServicePayload]| {
        let spec = merged(&named(exports)).unwrap().spec;
        (spec.type_, spec.ports.len())
    };
    assert_eq!(type_of(&[headless.clone(), plain.clone()]), (ServiceImportType::Headless, 2));
    assert_eq!(type_of(&[plain.clone(), headless.clone()]), (ServiceImportType::ClusterSetIP, 2));
    assert_eq!(type_of(&[headless]), (ServiceImportType::Headless, 1), "when the oldest leaves");
}

/// Exports as an API server takes them, of few names and numbers, so that they meet.
fn exports() -> impl Strategy<Value = Vec<ServicePayload>> {
    let ports = prop::collection::btree_map("[ab]?", (1..4i32, prop::bool::ANY), 1..4);
    let payload = (ports, prop::option::of(prop::sample::select(vec!["None", "ClientIP"])), prop::bool::ANY);
    let payload = payload.prop_map(|(ports, affinity, headless)| {
        let mut taken = std::collections::BTreeSet::new();
        let ports =
            ports.into_iter().filter(|(_, number)| taken.insert(*number)).map(|(name, (number, udp))| {
                port(&format!("{name} {number}/{}", if udp { "UDP" } else { "TCP" }))
            });
        let mut payload = export(&[]);
        payload.service_spec.ports = Some(ports.collect());
        payload.service_spec.session_affinity = affinity.map(str::to_owned);
        payload.service_spec.cluster_ip = headless.then(|| "None".to_owned());
        payload
    });
    prop::collection::vec(payload, 1..5)
}

proptest! {
    #[test]
    fn the_oldest_ones_ports_are_never_lost_and_nothing_is_there_twice(exports in exports()) {
        let all = merged(&named(&exports)).unwrap().spec.ports;
        for own in merged(&named(&exports[..1])).unwrap().spec.ports {
            let is_it = |port: &ServicePort| {
                (port.port, &port.protocol) == (own.port, &own.protocol)
                    && (own.name.is_none() || port.name == own.name)
            };
            prop_assert!(all.iter().any(is_it));
        }
        let names: std::collections::BTreeSet<_> = all.iter().map(|port| &port.name).collect();
        let numbers: std::collections::BTreeSet<_> = all.iter().map(|port| (port.port, &port.protocol)).collect();
        prop_assert_eq!((names.len(), numbers.len()), (all.len(), all.len()));
    }

    #[test]
    fn all_are_told_the_same_reasons(exports in exports()) {
        let told = reasons(&exports);
        prop_assert!(told.iter().all(|reasons| *reasons == told[0]));
        let are_equal = exports.iter().all(|export| {
            let alone = reasons(&[exports[0].clone(), export.clone()]);
            alone[0].is_empty()
        });
        prop_assert_eq!(told[0].is_empty(), are_equal);
    }
}
