//! What Antrea's controllers do otherwise than ours: names, finalizers and heartbeats.
//!
//! A member that runs them is marked on its ServiceAccount in the Common Area ([`SPEAKS`](crate::label::SPEAKS)); the leader says on its Lease which ones
//! there are ([`ANTREA_MEMBERS`](crate::label::ANTREA_MEMBERS)). Where the leader is Antrea's, every member writes as they do.

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

/// The members of a ClusterSet that write as Antrea's controllers do, by cluster ID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    marked: BTreeSet<String>,
    everyone: bool,
}

impl Members {
    /// These clusters, of which some may have IDs that nobody can have.
    pub fn of(clusters: impl IntoIterator<Item = String>) -> Self {
        let marked = clusters.into_iter().filter(|id| name::check_cluster_id(id).is_ok()).collect();
        Self { marked, everyone: false }
    }

    /// All there are: the leader is Antrea's.
    pub fn everyone() -> Self {
        Self { marked: BTreeSet::new(), everyone: true }
    }

    /// Those that an annotation [`ANTREA_MEMBERS`](crate::label::ANTREA_MEMBERS) names.
    pub fn named(annotation: &str) -> Self {
        Self::of(annotation.split(',').map(str::to_owned))
    }

    /// The annotation that names them.
    pub fn annotation(&self) -> String {
        self.marked.iter().map(String::as_str).collect::<Vec<_>>().join(",")
    }

    /// Whether this cluster is one of them.
    pub fn contains(&self, cluster: &str) -> bool {
        self.everyone || self.marked.contains(cluster)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.everyone && self.marked.is_empty()
    }

    /// Name of the record with the Service of any member: Antrea's always has dashes, also where they do not tell what belongs
    /// to which part.
    pub fn service_export(&self, cluster: &str, service: &ServiceName) -> String {
        match self.contains(cluster) {
            true => service_export(cluster, service),
            false => name::service_export(cluster, service),
        }
    }

    /// Name of the ResourceImport of a merged Service.
    pub fn service_import(&self, service: &ServiceName) -> String {
        if self.everyone { service_import(service) } else { name::service_import(service) }
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
        self.marked.iter()
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

/// Name that Antrea's leader gives the ResourceImport of a merged Service.
pub fn service_import(service: &ServiceName) -> String {
    format!("{}-{}-service", service.namespace, service.name)
}

/// The other Services that Antrea would give the same names as this one: dashes do not tell where a Namespace ends.
pub fn namesakes(service: &ServiceName) -> Vec<ServiceName> {
    let dashed = format!("{}-{}", service.namespace, service.name);
    let split = |(at, _)| ServiceName::new(&dashed[..at], &dashed[at + 1..]);
    let is_name = |other: &ServiceName| {
        other != service && name::is_dns_label(&other.namespace) && name::is_dns_label(&other.name)
    };
    dashed.match_indices('-').map(split).filter(is_name).collect()
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
    fn under_an_antrea_leader_all_names_are_its_own() {
        let (all, web) = (Members::everyone(), ServiceName::new("team-a", "web"));
        assert_eq!(all.service_export("east", &web), "east-team-a-web-service");
        assert_eq!(all.service_import(&web), "team-a-web-service");
        assert_eq!(Members::named("east").service_import(&web), "team-a.web.service");
        assert!(all.contains("anybody") && !all.is_empty());
        assert_eq!(namesakes(&web), [ServiceName::new("team", "a-web")]);
        assert_eq!(namesakes(&ServiceName::new("a", "b--c")), [], "no Service is named like that");
        assert_eq!(namesakes(&ServiceName::new("a", "b")), []);
    }

    #[test]
    fn the_annotation_says_who_they_are() {
        let members = Members::of(["south".to_owned(), "north-1".to_owned(), "Not An ID".to_owned()]);
        assert_eq!(members.annotation(), "north-1,south");
        assert_eq!(Members::named(&members.annotation()), members);
        assert!(Members::named("").is_empty());
    }
}
