//! What a member notes, in a ConfigMap of its Namespace, about the ClusterSet it takes part in: so that it knows what to leave
//! when the ClusterSet is gone by the time it looks, and that its identity has not been changed under it.

use std::collections::BTreeMap;

use crate::ranges::Ranges;

/// Name of the ConfigMap.
pub const NAME: &str = "freeport-membership";

/// Key by which `freeport leave` says that the cluster shall leave. Value: [`LEAVE`] or [`LEAVE_FORCED`].
pub const LEAVE_KEY: &str = "leave";
/// Withdraw the exports, then remove the imports.
pub const LEAVE: &str = "withdraw";
/// Remove the imports; the leader is gone and is not asked.
pub const LEAVE_FORCED: &str = "force";

/// Key of the ClusterSet's name.
pub const CLUSTER_SET: &str = "clusterSet";
/// Key of the cluster's ID in it.
pub const CLUSTER_ID: &str = "clusterID";
/// Key of the URL of the leader's API server.
pub const SERVER: &str = "server";

/// Key of the ranges that bound our endpoints.
pub const RANGES: &str = "addressRanges";

/// Key that says whose leader it is, where it is not Freeport's. Value: [`LED_BY_ANTREA`].
const LED_BY: &str = "ledBy";
/// Value of [`LED_BY`].
const LED_BY_ANTREA: &str = "antrea";

/// Whose leader a member talks to, and so in what words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Freeport's.
    #[default]
    Freeport,
    /// Antrea's: no Leases, and of records only what its controllers know.
    Antrea,
}

/// Key of the proxy, and of the name that the leader's certificate is for.
const PROXY: &str = "proxyURL";
const SERVER_NAME: &str = "tlsServerName";

/// How the leader's API server is reached, where its URL does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Via {
    /// A proxy that makes a tunnel, whatever the environment says.
    pub proxy: Option<String>,
    /// The name that its certificate is for, where it is not that in the URL.
    pub server_name: Option<String>,
}

/// A membership that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// When the ClusterSet was created, as the API server writes it: one that is older than its CRD went with the CRD, and
    /// nobody decided to leave.
    pub created: String,
    /// Our ID in it.
    pub cluster_id: String,
    /// Namespace of the leader's cluster with the records.
    pub common_area: String,
    /// URL of the leader's API server.
    pub server: String,
    /// Name of the Secret with the credential.
    pub secret: String,
    /// How it is reached.
    pub via: Via,
    /// Whose leader it is. That does not change by itself any more.
    pub wire: Wire,
    /// Which addresses our endpoints may have, as the leader said last: another leader is told of it by `freeport rejoin`. None if any.
    pub ranges: Ranges,
}

impl Membership {
    /// The data of the ConfigMap.
    pub fn data(&self) -> BTreeMap<String, String> {
        let led_by = (self.wire == Wire::Antrea).then(|| (LED_BY.to_owned(), LED_BY_ANTREA.to_owned()));
        let data = [
            (CLUSTER_SET, &self.cluster_set),
            ("created", &self.created),
            (CLUSTER_ID, &self.cluster_id),
            ("commonArea", &self.common_area),
            (SERVER, &self.server),
            ("secret", &self.secret),
        ]
        .map(|(key, value)| (key.to_owned(), value.clone()));
        let via = [(PROXY, &self.via.proxy), (SERVER_NAME, &self.via.server_name)];
        let via = via.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        let ranges = (!self.ranges.is_empty()).then(|| (RANGES.to_owned(), self.ranges.to_string()));
        data.into_iter().chain(via).chain(led_by).chain(ranges).collect()
    }

    /// Reads the data back; `None` when something is missing.
    pub fn from_data(data: &BTreeMap<String, String>) -> Option<Self> {
        let text = |key: &str| data.get(key).cloned();
        Some(Self {
            cluster_set: text(CLUSTER_SET)?,
            created: text("created")?,
            cluster_id: text(CLUSTER_ID)?,
            common_area: text("commonArea")?,
            server: text(SERVER)?,
            secret: text("secret")?,
            via: Via { proxy: text(PROXY), server_name: text(SERVER_NAME) },
            wire: match data.get(LED_BY).map(String::as_str) {
                Some(LED_BY_ANTREA) => Wire::Antrea,
                _ => Wire::Freeport,
            },
            ranges: text(RANGES).and_then(|ranges| ranges.parse().ok()).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_reads_back() {
        let note = Membership {
            cluster_set: "demo".into(),
            created: "2026-11-01T12:00:00Z".into(),
            cluster_id: "east".into(),
            common_area: "clusterset-demo".into(),
            server: "https://leader:6443".into(),
            secret: "freeport-leader-demo".into(),
            via: Via::default(),
            wire: Wire::Freeport,
            ranges: Ranges::default(),
        };
        assert_eq!(Membership::from_data(&note.data()), Some(note.clone()));
        let bound = Membership { ranges: "10.1.0.0/16,fd00:1::/64".parse().unwrap(), ..note.clone() };
        assert_eq!(Membership::from_data(&bound.data()), Some(bound));
        let of_antrea = Membership { wire: Wire::Antrea, ..note.clone() };
        assert_eq!(Membership::from_data(&of_antrea.data()), Some(of_antrea));
        let via = Via { proxy: Some("http://proxy:3128".into()), server_name: Some("leader".into()) };
        let by_proxy = Membership { via, ..note.clone() };
        assert_eq!(Membership::from_data(&by_proxy.data()), Some(by_proxy));
        let mut data = note.data();
        data.remove("server");
        assert_eq!(Membership::from_data(&data), None);
    }
}
