//! Edits of what is exported: a careless one ends nothing, and an end is an end.

use super::*;

/// A careless edit, and with which reason it is said.
struct Edit {
    reason: &'static str,
    export: Value,
    service: Value,
    settings: Settings,
}

impl Edit {
    fn of_export(reason: &'static str, spec: &Value) -> Self {
        Self { reason, export: json!({"spec": spec}), service: json!({}), settings: Settings::default() }
    }

    fn of_service(reason: &'static str, service: Value) -> Self {
        Self { reason, export: json!({}), service, settings: Settings::default() }
    }

    fn under(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// The entry with it, and as another process finds it: no more than what API servers hold.
    fn made(&self, mut entry: ServiceEntry) -> Known {
        let mut export = json!({
            "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-11-01T12:00:00Z"},
            "spec": {"exportedLabels": {"team": "shop"}},
        });
        json_patch(&mut export, &self.export);
        entry.export = Some(Arc::new(serde_json::from_value(export).unwrap()));
        entry.service = Some(Arc::new(local_service(|service| json_patch(service, &self.service))));
        entry.last_exported = None;
        known_with("east", &entry, self.settings.clone())
    }
}

fn json_patch(to: &mut Value, patch: &Value) {
    match patch.as_object().filter(|_| to.is_object()) {
        Some(fields) => {
            fields.iter().for_each(|(key, value)| json_patch(&mut to[key], value));
        }
        None => *to = patch.clone(),
    }
}

fn many_ports(count: i32) -> Value {
    let port = |n: i32| json!({"name": format!("p{n}"), "port": 1000 + n, "protocol": "TCP"});
    json!({"spec": {"ports": (0..count).map(port).collect::<Vec<_>>()}})
}

/// Whatever the reason, in one table: what cannot be exported as it is keeps its last valid export, also after a restart, and its endpoints
/// are followed.
#[test]
fn a_careless_edit_keeps_the_last_valid_export() {
    let cluster_ips = || Settings { endpoint_ip: EndpointIp::Cluster, ..Settings::default() };
    let under_antrea = || Settings { antrea_leads: true, ..Settings::default() };
    let many_labels: BTreeMap<_, _> = (0..257).map(|n| (format!("k{n}"), "")).collect();
    let edits = [
        Edit::of_export("InvalidExport", &json!({"exportedAnnotations": {"a": "x".repeat(70_000)}})),
        Edit::of_export("InvalidExport", &json!({"exportedLabels": many_labels})),
        Edit::of_export("InvalidExport", &json!({"exportedLabels": {"no such key!": "v"}})),
        Edit::of_export("InvalidExport", &json!({"exportedLabels": {"team": "no such value!"}})),
        Edit::of_export("InvalidExport", &json!({"exportedLabels": "none"})),
        Edit::of_service("TooManyPorts", many_ports(101)),
        Edit::of_service("TooManyPorts", many_ports(251)),
        Edit::of_service("InvalidServiceType", many_ports(0)),
        Edit::of_service("InvalidServiceType", json!({"spec": {"type": "Odd"}})),
        Edit::of_service("InvalidService", json!({"spec": {"trafficDistribution": "Odd"}})),
        Edit::of_service("InvalidServiceType", json!({"spec": {"clusterIP": "None"}})).under(cluster_ips()),
        Edit::of_service("InvalidServiceType", json!({"spec": {"clusterIP": "None"}})).under(under_antrea()),
        Edit::of_service("InvalidServiceType", json!({"spec": {"ipFamilies": ["IPv6"]}}))
            .under(under_antrea()),
        Edit::of_service(
            "ImportedService",
            json!({"metadata": {"annotations": {"multicluster.antrea.io/imported-service": "true"}}}),
        ),
    ];
    let written = carried_out(entry());
    let payload = |step: &Step| {
        let Step::Put { have: Some(_), want } = step else { panic!("{step:?}") };
        want.spec.0.clone().unwrap()
    };
    let before: Vec<_> = desired(&written, false).iter().map(payload).collect();
    for edit in edits {
        let known = edit.made(written.clone());
        let offered = offered(&known);
        let invalid = offered.invalid.unwrap();
        assert_eq!((invalid.reason, invalid.is_end), (edit.reason, false), "{}", invalid.message);
        assert_eq!(Some(offered.offer.unwrap().service()), before[0].service);
        // What a cluster that exports ClusterIPs says of endpoints is another thing, and Antrea's leader gets other records.
        if known.cluster.endpoint_ip == EndpointIp::Cluster || known.antrea_leads() {
            continue;
        }
        let steps = super::super::desired(&known, false);
        assert_eq!(steps.iter().map(payload).collect::<Vec<_>>(), before, "{}", invalid.message);

        // Another Pod, in a slice as Kubernetes writes it for the ports there are now.
        let followed = with(written.clone(), |entry| {
            let mut moved = slice(&["10.1.0.9"]);
            moved.ports.iter_mut().for_each(|port| port.name = Some("p0".into()));
            entry.slices.insert("web-x".into(), Arc::new(moved.clone()));
            moved.metadata.name = Some("web-y".into());
            entry.slices.insert("web-y".into(), Arc::new(moved));
        });
        for step in &super::super::desired(&edit.made(followed), false)[1..] {
            let Step::Put { want, .. } = step else { panic!("{step:?}") };
            let slice = want.spec.0.as_ref().unwrap().endpoint_slice.as_ref().unwrap();
            assert_eq!(slice.endpoints[0].addresses, ["10.1.0.9"]);
            let ports: Vec<_> = slice.ports.iter().map(|port| (port.service_port, port.port)).collect();
            let is_known = written.own_slices.contains_key(want.metadata.name.as_ref().unwrap());
            let has_port =
                known.entry.service.as_ref().unwrap().spec.ports.iter().any(|port| port.port == 80);
            // A new slice that lacks a port of the Service does not lead there.
            let leads = if is_known || !has_port { vec![(80, 8080)] } else { vec![] };
            assert_eq!(ports, leads, "{}", invalid.message);
        }
    }
}

#[test]
fn an_end_is_an_end_whatever_else_is_wrong() {
    let going = json!({"metadata": {"deletionTimestamp": "2026-11-02T12:00:00Z"}});
    let long = json!({"exportedAnnotations": {"a": "x".repeat(70_000)}});
    let is_excluded = Settings { is_excluded: true, ..Settings::default() };
    let mut export_going = Edit::of_service("Terminating", many_ports(251));
    export_going.export = going.clone();
    let mut external = Edit::of_export("InvalidServiceType", &long);
    external.service = json!({"spec": {"type": "ExternalName", "ports": []}});
    let mut service_going = Edit::of_export("Terminating", &long);
    service_going.service = going;
    let excluded = Edit::of_export("NamespaceExcluded", &long).under(is_excluded);
    let written = carried_out(entry());
    for edit in [export_going, external, service_going, excluded] {
        let known = edit.made(written.clone());
        let invalid = offered(&known).invalid.unwrap();
        assert_eq!((invalid.reason, invalid.is_end), (edit.reason, true), "{}", invalid.message);
        let Step::Put { want, .. } = &super::super::desired(&known, false)[0] else { panic!() };
        assert!(want.spec.0.as_ref().unwrap().service.as_ref().unwrap().withdrawn, "{}", invalid.message);
    }
    let mut none = Edit::of_export("NoService", &long).made(written.clone());
    Arc::make_mut(&mut none.entry).service = None;
    assert!(offered(&none).offer.is_none(), "no Service");
    let mut another = Edit::of_export("InvalidExport", &long);
    another.export["metadata"] = json!({"creationTimestamp": "2026-11-01T12:00:01Z"});
    assert!(offered(&another.made(written)).offer.is_none(), "another ServiceExport: that one was deleted");
}

#[test]
fn before_the_leader_is_there_what_is_imported_here_says_what_was_exported() {
    let edit = Edit::of_service("TooManyPorts", many_ports(101));
    let mut entry = entry();
    assert!(offered(&edit.made(entry.clone())).offer.is_none(), "nothing");
    let record = api::name::slice_export("east", &service(), "web-x");
    let imported = |name: &str, created: &str| -> crate::service::index::view::Slice {
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "namespace": "shop", "creationTimestamp": created,
                "labels": {
                    "multicluster.kubernetes.io/source-cluster": "east",
                    "endpointslice.kubernetes.io/managed-by": "freeport",
                },
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }))
        .unwrap()
    };
    let import = json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/managed-by": "freeport"}},
        "spec": {"type": "ClusterSetIP", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}], "ipFamilies": ["IPv4"]},
    });
    entry.import = Some(Arc::new(serde_json::from_value(import).unwrap()));
    let name = api::name::imported_slice("web", &record);
    for (created, is_kept) in [("2026-11-01T12:00:01Z", true), ("2026-11-01T11:59:59Z", false)] {
        entry.imported_slices.insert(name.clone(), Arc::new(imported(&name, created)));
        let known = edit.made(entry.clone());
        let offer = offered(&known).offer;
        assert_eq!(offer.is_some(), is_kept, "{created}");
        let Some(offer) = offer else { continue };
        let slices = offer.own_slices();
        assert_eq!((slices[&record].ports[0].service_port, slices[&record].ports[0].port), (80, 8080));
    }
}
