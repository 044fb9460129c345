//! Which members a Common Area knows, decided from what was read.

use std::collections::BTreeSet;

use api::name;

use crate::objects::{Object, access};

/// IDs of the members to which these Leases, announces, ServiceAccounts and Roles of a Common Area belong.
pub(super) fn ids(objects: &[Object]) -> BTreeSet<&str> {
    objects.iter().filter_map(id).collect()
}

fn id(object: &Object) -> Option<&str> {
    let prefix = match object.resource.kind.as_str() {
        "Lease" => name::member_lease(""),
        "MemberClusterAnnounce" => name::announce(""),
        "ServiceAccount" | "Role" => access::account(""),
        _ => return None,
    };
    object.name.strip_prefix(&prefix).filter(|id| name::check_cluster_id(id).is_ok())
}

#[cfg(test)]
mod tests {
    use api::announce::MemberClusterAnnounce;
    use k8s_openapi::api::{coordination::v1::Lease, core::v1::ServiceAccount, rbac::v1::Role};

    use super::*;
    use crate::eraser::called;

    const AREA: &str = "clusterset-demo";

    #[test]
    fn each_trace_of_a_member_makes_it_known() {
        let objects = [
            called::<Lease>(AREA, "freeport-leader"),
            called::<Lease>(AREA, "freeport-member-east"),
            called::<MemberClusterAnnounce>(AREA, "member-announce-from-west"),
            called::<ServiceAccount>(AREA, "default"),
            called::<ServiceAccount>(AREA, "freeport-member-east"),
            called::<ServiceAccount>(AREA, "freeport-member-north"),
            called::<Role>(AREA, "freeport-leader"),
            called::<Role>(AREA, "freeport-member-eu-1.prod"),
        ];
        assert_eq!(ids(&objects), ["east", "eu-1.prod", "north", "west"].into());
        assert!(ids(&[]).is_empty());
    }
}
