//! What a link watches of those who run Antrea's controllers: members, and a leader.

use std::time::Instant;

use api::{
    label,
    resource_export::{ENDPOINTS, SERVICE},
};
use jiff::Timestamp;
use kube::{Api, Client, runtime::watcher};
use presence::heartbeat::Announce;
use tokio::task::JoinSet;

use super::{
    Link,
    watches::{Scope, there},
};
use crate::{
    membership::Target,
    service::antrea::{PeerRecord, leader::AntreaImport},
};

impl Link {
    /// What there is in a Common Area of Antrea's: everybody writes as its controllers do, and there are no Leases.
    pub(super) fn watch_antrea_leader(&self, tasks: &mut JoinSet<()>, client: &Client, target: &Target) {
        let imports = Api::<AntreaImport>::namespaced(client.clone(), &target.us.common_area);
        self.index(tasks, Scope::Leader, imports, there("ResourceImport"), "");
        self.watch_antrea(tasks, client, target, "");
    }

    /// Records of the kinds that Antrea's controllers write, of other clusters that `also` selects, and heartbeats.
    pub(super) fn watch_antrea(&self, tasks: &mut JoinSet<()>, client: &Client, target: &Target, also: &str) {
        let (us, area) = (&target.us.cluster, &target.us.common_area);
        let selector = format!(
            "{}!={us},{} in ({SERVICE},{ENDPOINTS}){also}",
            label::SOURCE_CLUSTER_ID,
            label::SOURCE_KIND,
        );
        let records = Api::<PeerRecord>::namespaced(client.clone(), area);
        self.index(tasks, Scope::Leader, records, there("ResourceExport of Antrea"), &selector);
        let link = self.clone();
        tasks.spawn(self.hub.watch(
            Api::<Announce>::namespaced(client.clone(), area),
            watcher::Config::default(),
            there("MemberClusterAnnounce"),
            self.env.metrics.clone(),
            move |change| {
                let (now, clock) = (Instant::now(), Timestamp::now());
                link.hear(&link.leases.with(|leases| leases.announced(change, now, clock)));
            },
        ));
    }
}
