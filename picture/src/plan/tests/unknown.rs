//! An unknown object is not taken for one that does not exist.

use super::*;

#[test]
fn a_cluster_that_is_not_known_is_told_from_one_that_could_not_be_read() {
    let error = |clusters: &[Cluster], at: Option<&str>| plan(clusters, at, &[], now()).unwrap_err();
    assert!(matches!(error(&[], None), Unplanned::UnknownCluster(_)));
    assert!(matches!(error(&clusters(), Some("north")), Unplanned::UnknownCluster(_)));
    let mut all = clusters();
    all[WEST].sets = Ok(vec![]);
    let none = error(&all, Some("west-admin"));
    assert!(
        matches!(&none, Unplanned::Unread { context, why } if context == "west-admin" && why.contains("belongs to no"))
    );
    all[WEST].sets = Err(Gap::NoAnswer("timed out".into()));
    assert!(matches!(error(&all, Some("north")), Unplanned::Unread { .. }), "it may be the ID of west");
}

#[test]
fn members_that_were_not_looked_at_are_noted_also_where_an_export_ends() {
    let mut all = clusters();
    all.remove(WEST);
    for change in [export(), Change::Unexport(web())] {
        let notes = planned(&all, "east", &[change]).not_looked_at;
        assert_eq!(notes, ["imports in west were not looked at"]);
    }
    all[EAST].deployment = Err(Gap::Forbidden("no".into()));
    let notes = planned(&all, "east", &[export()]).not_looked_at;
    assert_eq!(notes[0], "the member's Deployment of east: forbidden: no");
}

#[test]
fn nothing_is_planned_where_the_cluster_of_the_change_could_not_be_read() {
    let gap = || Gap::Forbidden("no".into());
    let lose: [fn(&mut Cluster, Gap); 3] = [
        |cluster, gap| cluster.exports = Err(gap),
        |cluster, gap| cluster.services = Err(gap),
        |cluster, gap| cluster.namespaces = Err(gap),
    ];
    for (lose, part) in lose.into_iter().zip(["ServiceExports", "Services", "Namespaces"]) {
        for change in [export(), Change::Unexport(web())] {
            let mut all = clusters();
            lose(&mut all[EAST], gap());
            let said = plan(&all, Some("east"), &[change], now()).unwrap_err().to_string();
            assert_eq!(said, format!("east-admin: cannot plan: {part}: forbidden: no"));
        }
    }
}

#[test]
fn whether_the_last_endpoint_is_lost_is_not_known_without_endpoint_slices() {
    let mut all = clusters();
    all[WEST].slices = Err(Gap::NoKind);
    let plan = planned(&all, "east", &[Change::Unexport(web())]);
    let found: Vec<_> =
        plan.services[0].losing().map(|one| (one.cluster.as_str(), one.loses_all())).collect();
    assert_eq!(found, [("east", Some(true)), ("west", None)]);
    assert_eq!(plan.loss().unwrap(), "imports lose their last endpoint");
    all[EAST].slices = Err(Gap::NoKind);
    let unknown = planned(&all, "east", &[Change::Unexport(web())]);
    assert_eq!(unknown.loss().unwrap(), "whether the import in east loses its last endpoint is not known");
    assert_eq!(planned(&clusters(), "east", &[export()]).loss(), None);
    // Nothing that was read is a problem, and it is not said that there is none.
    let mut all = clusters();
    all[EAST].slices = Err(Gap::NoKind);
    let plan = planned(&all, "east", &[export()]);
    let text = plan.text().join("\n");
    assert!(
        plan.is_well()
            && text.contains("in east: address 10.9.0.7 is kept; endpoints not known -> not known"),
        "{text}"
    );
    assert!(text.ends_with("no problem in what was looked at"), "{text}");
    assert!(!text.contains("NoReadyEndpoints"), "{text}");
    let all = planned(&clusters(), "east", &[export()]).text();
    assert_eq!(all.last().unwrap(), "no conflict, no refusal, and no import loses its last endpoint");
}

#[test]
fn without_leader_and_imports_no_import_is_said_to_be_removed() {
    let mut east = clusters().remove(EAST);
    east.imports = Err(Gap::NoKind);
    let plan = planned(&[east], "east", &[Change::Unexport(web())]);
    assert_eq!(plan.services[0].importers[0].loses_all(), None);
    assert!(!plan.text().join("\n").contains("is removed"), "{:?}", plan.text());
    assert!(plan.not_looked_at.iter().any(|note| note.contains("another cluster exports shop/web")));
}

#[test]
fn endpoints_of_a_new_target_port_are_not_known() {
    let ports = |target: Value| -> TargetPorts {
        object(in_shop(
            "web",
            &json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": target}]}}),
        ))
    };
    let mut all = clusters();
    let web = &mut all[EAST].services.as_mut().unwrap()[0];
    web.spec.never.selector = [("app".to_owned(), "web".to_owned())].into();
    let same = Change::Service(web.clone());
    all[EAST].target_ports = Ok(vec![ports(json!(8080))]);
    let is_known = |target: Value| {
        let changes = [same.clone(), Change::TargetPorts(ports(target))];
        planned(&all, "east", &changes).services[0].importers[0].after_known
    };
    assert!(is_known(json!(8080)) && !is_known(json!(8081)) && !is_known(json!("http")));
    assert!(!is_known(Value::Null), "it is that of the Service, 80");
}

#[test]
fn endpoints_of_a_new_selector_or_port_are_not_known() {
    let selecting = |app: &str, port: i32| {
        let mut service = service(port);
        service.spec.never.selector = [("app".to_owned(), app.to_owned())].into();
        service
    };
    let mut all = clusters();
    all[EAST].services.as_mut().unwrap()[0] = selecting("web", 80);
    let is_known = |change: Service| {
        let plan = planned(&all, "east", &[Change::Service(change)]);
        let noted = plan.not_looked_at.iter().any(|note| note.starts_with("endpoints of shop/web in east"));
        let importing = &plan.services[0].importers[0];
        let says = format!("{:?}", plan.services[0].exporters).contains("NoReadyEndpoints");
        assert!(!says && noted != importing.after_known && plan.is_well(), "{plan:?}");
        importing.after_known
    };
    assert!(is_known(selecting("web", 80)));
    assert!(!is_known(selecting("shop", 80)));
    assert!(!is_known(selecting("web", 81)));
    assert!(!is_known(service(80)), "the selector goes");
    let new = planned(&clusters(), "west", &[Change::Service(selecting("web", 80)), export()]);
    assert!(new.not_looked_at.iter().any(|note| note.contains("of shop/web in west")), "{new:?}");
    let west = new.services[0].exporters.iter().find(|exported| exported.cluster == "west").unwrap();
    assert!(west.conditions.iter().all(|said| said.type_ != api::mcs::NO_READY_ENDPOINTS), "{west:?}");
}
