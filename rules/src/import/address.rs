//! Families and addresses of an imported Service: pure.

use api::{
    family,
    mcs::{ServiceImportSpec, ServiceImportType},
    resource_export::HEADLESS,
};

use crate::view::ServiceSpec;

/// Families in which the import can be reached here: those of the import that this cluster has (`local`). While it is not known what it
/// has, those of the Service that is `there`, or just one: an API server refuses two addresses where there is one family. A
/// headless Service it lets have both.
pub fn served(merged: &ServiceImportSpec, local: &[String], there: Option<&ServiceSpec>) -> Vec<String> {
    let mut exported = family::said(&merged.ip_families);
    if !local.is_empty() {
        return family::common(&exported, local);
    }
    if merged.type_ == ServiceImportType::Headless {
        return exported;
    }
    let kept = family::common(&exported, there.map(|there| there.ip_families.as_slice()).unwrap_or_default());
    if kept.is_empty() {
        exported.truncate(1);
        return exported;
    }
    kept
}

/// Reports whether a Service that is there can become one with these families: an API server changes neither whether it is headless nor
/// its first family. What somebody gave a selector has slices that nobody takes away with the selector, and what became a mere
/// name has lost its address.
pub fn can_become(there: &ServiceSpec, families: &[String], is_headless: bool) -> bool {
    there.never.selector.is_empty()
        && there.type_.as_deref() != Some("ExternalName")
        && there.is_headless() == is_headless
        && there.ip_families.first().is_none_or(|first| families.contains(first))
}

/// What a Service with these families says of its addresses. It keeps those of the Service that is `there`, or gets the
/// `noted` ones of one that was lost back; their families stay in front, so that a family added later changes no address.
pub fn asked(
    families: &[String],
    is_headless: bool,
    there: Option<&ServiceSpec>,
    noted: &[String],
) -> ServiceSpec {
    let is_served = |family: &str| families.iter().any(|served| served == family);
    let first = match there {
        Some(there) => there.ip_families.clone(),
        None => noted.iter().map(|ip| family::of(ip).to_owned()).collect(),
    };
    let mut ip_families: Vec<String> = first.into_iter().filter(|family| is_served(family)).collect();
    for family in families {
        if !ip_families.contains(family) {
            ip_families.push(family.clone());
        }
    }
    let had = there.map_or_else(|| noted.to_vec(), |there| there.addresses().cloned().collect());
    let cluster_ips: Vec<_> = match is_headless {
        true => vec![HEADLESS.to_owned()],
        false => had.into_iter().filter(|ip| is_served(family::of(ip))).collect(),
    };
    let policy = if ip_families.len() > 1 { "RequireDualStack" } else { "SingleStack" };
    ServiceSpec {
        cluster_ip: cluster_ips.first().cloned(),
        cluster_ips,
        ip_families,
        ip_family_policy: Some(policy.to_owned()),
        ..ServiceSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|text| (*text).to_owned()).collect()
    }

    fn service(ips: &[&str], families: &[&str]) -> ServiceSpec {
        ServiceSpec {
            cluster_ip: ips.first().map(|ip| (*ip).to_owned()),
            cluster_ips: words(ips),
            ip_families: words(families),
            ..ServiceSpec::default()
        }
    }

    #[test]
    fn an_import_is_served_in_the_families_that_both_have() {
        let spec = |merged: &[&str]| ServiceImportSpec {
            ip_families: words(merged),
            ..ServiceImportSpec::default()
        };
        let served = |merged: &[&str], here: &[&str]| served(&spec(merged), &words(here), None);
        assert_eq!(served(&["IPv6", "IPv4"], &["IPv4", "IPv6"]), ["IPv6", "IPv4"]);
        assert_eq!(served(&["IPv6", "IPv4"], &["IPv4"]), ["IPv4"]);
        assert!(served(&["IPv6"], &["IPv4"]).is_empty());
        assert_eq!(served(&[], &["IPv6", "IPv4"]), ["IPv4"], "who says nothing means IPv4");
        assert_eq!(served(&["IPv6", "IPv4"], &[]), ["IPv6"], "not known");
    }

    #[test]
    fn while_it_is_not_known_what_a_cluster_has_nothing_is_taken_away_and_one_is_tried() {
        let both =
            ServiceImportSpec { ip_families: words(&["IPv6", "IPv4"]), ..ServiceImportSpec::default() };
        let served = |there: &[&str]| served(&both, &[], Some(&service(&[], there)));
        assert_eq!(served(&["IPv4"]), ["IPv4"]);
        assert_eq!(served(&["IPv4", "IPv6"]), ["IPv6", "IPv4"]);
        assert_eq!(served(&[]), ["IPv6"]);
        let headless = ServiceImportSpec { type_: ServiceImportType::Headless, ..both.clone() };
        assert_eq!(super::served(&headless, &[], None), ["IPv6", "IPv4"]);
    }

    #[test]
    fn r31_a_family_that_is_added_or_taken_away_leaves_the_first_address() {
        let asked = |families: &[&str], there: &ServiceSpec| asked(&words(families), false, Some(there), &[]);
        let single = service(&["10.0.0.1"], &["IPv4"]);
        for families in [["IPv4", "IPv6"], ["IPv6", "IPv4"]] {
            let both = asked(&families, &single);
            assert_eq!(
                (both.ip_families, both.cluster_ips),
                (words(&["IPv4", "IPv6"]), words(&["10.0.0.1"]))
            );
            assert_eq!(both.ip_family_policy.as_deref(), Some("RequireDualStack"));
        }
        let dual = service(&["10.0.0.1", "fd00::1"], &["IPv4", "IPv6"]);
        assert_eq!(asked(&["IPv6", "IPv4"], &dual).cluster_ips, dual.cluster_ips);
        let less = asked(&["IPv4"], &dual);
        assert_eq!((less.ip_families, less.cluster_ips), (words(&["IPv4"]), words(&["10.0.0.1"])));
        assert_eq!(less.ip_family_policy.as_deref(), Some("SingleStack"));
    }

    #[test]
    fn what_an_api_server_does_not_change_is_made_anew_with_the_address_that_was_noted() {
        let dual = service(&["10.0.0.1", "fd00::1"], &["IPv4", "IPv6"]);
        let v6 = words(&["IPv6"]);
        assert!(!can_become(&dual, &v6, false), "its first family");
        assert!(
            !can_become(&dual, &dual.ip_families, true)
                && can_become(&dual, &words(&["IPv6", "IPv4"]), false)
        );
        let anew = asked(&v6, false, None, &dual.cluster_ips);
        assert_eq!((anew.ip_families, anew.cluster_ip.as_deref()), (v6, Some("fd00::1")));
        let lost = asked(&words(&["IPv6", "IPv4"]), false, None, &words(&["10.0.0.1"]));
        assert_eq!(lost.ip_families, ["IPv4", "IPv6"], "as the address that was noted");
    }

    #[test]
    fn what_somebody_gave_a_selector_or_a_mere_name_is_made_anew() {
        let there = service(&["10.0.0.1"], &["IPv4"]);
        let fits = |there: &ServiceSpec| can_become(there, &words(&["IPv4"]), false);
        assert!(fits(&there));
        let mut selecting = there.clone();
        selecting.never.selector.insert("app".into(), "evil".into());
        let named = ServiceSpec { type_: Some("ExternalName".into()), ..service(&[], &[]) };
        assert!(!fits(&selecting) && !fits(&named));
    }

    #[test]
    fn a_headless_service_has_families_and_no_address() {
        let both = words(&["IPv6", "IPv4"]);
        let made = asked(&both, true, None, &words(&["10.0.0.1"]));
        assert_eq!((made.cluster_ip.as_deref(), made.addresses().count()), (Some("None"), 0));
        let there = service(&["None"], &["IPv4", "IPv6"]);
        assert!(can_become(&there, &both, true));
        assert_eq!(asked(&both, true, Some(&there), &[]).ip_families, there.ip_families);
    }
}
