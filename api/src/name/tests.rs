use proptest::prelude::*;

use super::*;

#[test]
fn names_follow_the_wire_contract() {
    let web = ServiceName::new("shop", "web");
    assert_eq!(service_export("east", &web), "east-shop-web-service");
    assert_eq!(service_import(&web), "shop-web-service");
    assert_eq!(slice_export("east", &web, "web-x7k2p"), "east.shop.web.slice.01eeccc3f8c6f346");
    assert_eq!(imported_service("web"), "antrea-mc-web");
    assert_eq!(announce("east"), "member-announce-from-east");
    assert_eq!(member_lease("east"), "freeport-member-east");

    let dashed = ServiceName::new("team-a", "web-front");
    assert_eq!(service_export("east", &dashed), "east.team-a.web-front.service");
    assert_eq!(service_import(&dashed), "team-a.web-front.service");
    assert_eq!(service_export("eu-1", &web), "eu-1.shop.web.service");
    assert_eq!(service_import(&ServiceName::new("shop", "web-front")), "shop-web-front-service");
}

#[test]
fn names_of_objects_may_have_dots() {
    let long = "x".repeat(64);
    for good in ["db", "mangodbs.example.com", "0", &long] {
        assert!(is_dns_subdomain(good), "{good}");
    }
    for bad in ["", "a..b", ".a", "a.", "D", "a_b", "-a.b", &"x".repeat(254)] {
        assert!(!is_dns_subdomain(bad), "{bad}");
    }
    assert!(is_dns_label("db") && !is_dns_label(&long) && !is_dns_label("a.b") && !is_dns_label(""));
}

#[test]
fn every_name_fits_a_custom_resource() {
    let longest = ServiceName::new("n".repeat(63), "s".repeat(63));
    let cluster = "c".repeat(CLUSTER_ID_MAX);
    assert!(slice_export(&cluster, &longest, "x").len() <= 253);
    assert!(service_export(&cluster, &longest).len() <= 253);
    let (fits, too_long) = ("s".repeat(53), "s".repeat(54));
    assert_eq!(imported_service(&fits), format!("antrea-mc-{fits}"));
    assert_eq!(imported_service(&too_long), format!("antrea-mc-{}-{}", "s".repeat(36), hash(&too_long)));
    assert_eq!(imported_service(&too_long).len(), 63);
    assert_ne!(imported_service(&too_long), imported_service(&"s".repeat(55)));
}

#[test]
fn a_name_says_of_which_import_an_object_is() {
    let (web, long) = ("web", "s".repeat(60));
    for service in [web, &long] {
        let (derived, slice) = (imported_service(service), imported_slice(service, "east.shop.x.slice.0"));
        assert_eq!(service_of_slice(&slice), Some(derived.as_str()));
        assert_eq!(import_of(&derived, Some(service)), Some(service));
    }
    assert_eq!(import_of("antrea-mc-web", Some("other")), Some("web"), "the name cannot be changed");
    assert_eq!(import_of("web", Some("web")), None);
    for other in ["antrea-mc-web-x7k2p", "web-0123456789abcdef", "antrea-mc-web"] {
        assert_eq!(service_of_slice(other), None, "{other}: of one that Kubernetes made");
    }
    for other in ["east-clusterinfo", "a.b.c.service", "shop-web", "-web-service", "Shop-web-service"] {
        assert_eq!(of_service_import(other), None, "{other}");
    }
}

#[test]
fn r1_cluster_ids_are_one_or_two_labels() {
    for good in ["east", "eu-1", "a.b", "0"] {
        assert_eq!(check_cluster_id(good), Ok(()), "{good}");
    }
    for bad in ["", "East", "a.b.c", "-a", "a-", "a_b", ".a", "a.", &"x".repeat(64)] {
        assert!(check_cluster_id(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_record_of_a_service_says_by_its_name_whose_it_is() {
    let web = || ServiceName::new("shop", "web-front");
    assert_eq!(of_service_export("east-shop-web-front-service"), Some(("east".into(), web())));
    assert_eq!(of_service_export("eu-1.x.shop.web-front.service"), Some(("eu-1.x".into(), web())));
    for other in [
        "",
        "service",
        "-service",
        "east-shop-service",
        "east.shop.web.service",
        "x-clusterinfo",
        "East-shop-web-service",
    ] {
        assert_eq!(of_service_export(other), None, "{other}");
    }
}

#[test]
fn application_protocols_are_qualified_names() {
    for good in ["http", "kubernetes.io/h2c", "HTTP_2"] {
        assert!(is_qualified_name(good), "{good}");
    }
    for bad in ["", "a b", "/x", "x/", "-a", "a/b/c", "A_b.com/x"] {
        assert!(!is_qualified_name(bad), "{bad}");
    }
}

fn label() -> impl Strategy<Value = String> {
    "[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?"
}

proptest! {
    #[test]
    fn different_tuples_never_share_a_name(
        a in (label(), label(), label()), b in (label(), label(), label()),
    ) {
        let (sa, sb) = (ServiceName::new(&a.1, &a.2), ServiceName::new(&b.1, &b.2));
        prop_assert_eq!(service_export(&a.0, &sa) == service_export(&b.0, &sb), a == b);
        prop_assert_eq!(service_import(&sa) == service_import(&sb), sa == sb);
        prop_assert_eq!(of_service_export(&service_export(&a.0, &sa)), Some((a.0.clone(), sa.clone())));
        prop_assert_eq!(of_service_import(&service_import(&sa)), Some(sa.clone()));
        prop_assert_eq!(of_endpoints_import(&endpoints_import(&sa)), Some(sa.clone()));
        prop_assert!(is_slice_export(&slice_export(&a.0, &sa, "x"), &a.0, &sa));
        prop_assert_eq!(is_slice_export(&slice_export(&b.0, &sb, "x"), &a.0, &sa), a == b);
    }
}
