//! What a member that runs Antrea's controllers does otherwise than one of ours: its names, finalizers and heartbeats.
//!
//! Such a member is marked on its ServiceAccount in the Common Area ([`SPEAKS`](crate::label::SPEAKS)); the leader says on its Lease which ones
//! there are ([`ANTREA_MEMBERS`](crate::label::ANTREA_MEMBERS)).

use std::collections::BTreeSet;

use crate::{ServiceName, name};

/// Finalizers of Antrea's records, the older one since before its v2.2. A member deletes its record with one of them on it, and
/// waits for the leader to take it off.
pub const RECORD_FINALIZERS: [&str; 2] =
    ["resourceexport.antrea.io/finalizer", "resourceexport.finalizers.antrea.io"];

/// Finalizer of the announce of a member: the leader's, which keeps it until the leader has removed the member's records.
pub fn announce_finalizer(cluster: &str) -> String {
    format!("memberclusterannounce.finalizer.antrea.io/{cluster}")
}

/// Annotation of a MemberClusterAnnounce: when the member last said that it is there, by its own clock.
pub const TOUCHED: &str = "touch-ts";

/// The members of a ClusterSet that run Antrea's controllers, by cluster ID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members(BTreeSet<String>);

impl Members {
    /// These clusters, of which some may have IDs that nobody can have.
    pub fn of(clusters: impl IntoIterator<Item = String>) -> Self {
        Self(clusters.into_iter().filter(|id| name::check_cluster_id(id).is_ok()).collect())
    }

    /// Those that an annotation [`ANTREA_MEMBERS`](crate::label::ANTREA_MEMBERS) names.
    pub fn named(annotation: &str) -> Self {
        Self::of(annotation.split(',').map(str::to_owned))
    }

    /// The annotation that names them.
    pub fn annotation(&self) -> String {
        self.0.iter().map(String::as_str).collect::<Vec<_>>().join(",")
    }

    /// Whether this cluster is one of them.
    pub fn contains(&self, cluster: &str) -> bool {
        self.0.contains(cluster)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name of the record with the Service of any member: Antrea's always has dashes, also where they do not tell what belongs
    /// to which part.
    pub fn service_export(&self, cluster: &str, service: &ServiceName) -> String {
        match self.contains(cluster) {
            true => service_export(cluster, service),
            false => name::service_export(cluster, service),
        }
    }

    /// Name of the record with the endpoints of any member.
    pub fn endpoints_export(&self, cluster: &str, service: &ServiceName) -> String {
        match self.contains(cluster) {
            true => endpoints_export(cluster, service),
            false => name::endpoints_export(cluster, service),
        }
    }
}

impl<'a> IntoIterator for &'a Members {
    type Item = &'a String;
    type IntoIter = std::collections::btree_set::Iter<'a, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Name that Antrea gives the record with a Service.
pub fn service_export(cluster: &str, service: &ServiceName) -> String {
    dashed(cluster, service, "service")
}

/// Name that Antrea gives the record with all endpoints of a Service.
pub fn endpoints_export(cluster: &str, service: &ServiceName) -> String {
    dashed(cluster, service, "endpoints")
}

fn dashed(cluster: &str, service: &ServiceName, kind: &str) -> String {
    format!("{cluster}-{}-{}-{kind}", service.namespace, service.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_antrea_member_names_its_records_with_dashes() {
        let (members, web) = (Members::named("north-1,south"), ServiceName::new("team-a", "web"));
        assert_eq!(members.service_export("north-1", &web), "north-1-team-a-web-service");
        assert_eq!(members.endpoints_export("north-1", &web), "north-1-team-a-web-endpoints");
        assert_eq!(members.service_export("east", &web), "east.team-a.web.service", "ours as ever");
        assert_eq!(members.endpoints_export("east", &web), "east.team-a.web.endpoints");
    }

    #[test]
    fn the_annotation_says_who_they_are() {
        let members = Members::of(["south".to_owned(), "north-1".to_owned(), "Not An ID".to_owned()]);
        assert_eq!(members.annotation(), "north-1,south");
        assert_eq!(Members::named(&members.annotation()), members);
        assert!(Members::named("").is_empty());
    }
}
