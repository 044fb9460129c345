//! Label and annotation keys, and the fixed values that go with them.
//!
//! Keys of Antrea and of the Multi-Cluster Services API are wire contract and stay as they are; ours start with
//! `multicluster.freeport.dev/`.

/// Label of a Namespace in the leader's cluster that is a Common Area; the value is [`TRUE`].
pub const COMMON_AREA: &str = "multicluster.freeport.dev/common-area";

/// Label of a Namespace in a member's cluster: with [`FALSE`] its Services are not to be exported. Set by administrators.
pub const EXPORT: &str = "multicluster.freeport.dev/export";

/// Field manager of what `freeport` installs.
pub const INSTALLER: &str = "freeport-cli";

/// Annotation of a Lease: [`TRUE`] when its holder's watches are open and it has nothing left to write, [`WRITING`] when it has,
/// [`FALSE`] when it cannot see all that it has to.
pub const SETTLED: &str = "multicluster.freeport.dev/settled";

/// Annotation of a Lease that says [`WRITING`]: the time of this renewal, and the names of what its holder has left to write, with spaces
/// between ([`unwritten`](crate::unwritten)). Nothing where that is too much to say.
pub const UNWRITTEN: &str = "multicluster.freeport.dev/unwritten";

/// Annotation of a Lease: version of the wire contract its holder speaks, [`WIRE_VERSION`].
pub const WIRE: &str = "multicluster.freeport.dev/wire";

/// The wire contract of this build.
pub const WIRE_VERSION: &str = "1";

/// Annotation of a Lease: version of the daemon that holds it.
pub const VERSION: &str = "multicluster.freeport.dev/version";

/// Annotation of a Lease: [`TRUE`] when its cluster was removed from the set for good, so nobody waits for its word.
pub const LEFT: &str = "multicluster.freeport.dev/left";

/// Annotation of a Lease: another cluster, or a copy of its holder's, that would hold it if it were free, and when it last said so.
pub const WAITING: &str = "multicluster.freeport.dev/waiting";

/// Annotation of the Lease that a member keeps in its own cluster: when the backup was made from which its API server was restored
/// last, and when that was noticed, with a slash between.
pub const RESTORED: &str = "multicluster.freeport.dev/restored";

/// Annotation of the same Lease: IDs of the clusters whose endpoints have answered from here, with spaces between. Who takes over, or starts
/// again, knows by it that their silence is news.
pub const REACHED: &str = "multicluster.freeport.dev/reached";

/// Annotation of a member's Lease: when it was renewed, and IDs of the clusters that do not renew theirs, as far as it hears, but whose endpoints
/// take connections from there, with spaces between; empty if there are none. Their records stay.
pub const ANSWERING: &str = "multicluster.freeport.dev/answering";

/// Annotation of a member's Lease: when it was renewed, and the Namespaces that Services are exported from and that its cluster lacks, with
/// spaces between ([`lacking`](crate::lacking)).
pub const LACKS: &str = "multicluster.freeport.dev/lacks";

/// Annotation of the leader's Lease: when it was renewed, and of these Namespaces which members lack them, as `NAMESPACE=COUNT,ID,ID` with
/// spaces between.
pub const LACKING: &str = "multicluster.freeport.dev/lacking";

/// Annotation of a ServiceImport: uid of the Lease of the leader in whose word nothing was missing of what is here. Only that
/// hub can know that a cluster without a Lease has left.
pub const HUB: &str = "multicluster.freeport.dev/hub";

/// Before the uid of our own announce, the value of [`HUB`] where a leader of Antrea's leads, which has no Lease.
pub const HUB_OF_ANTREA: &str = "antrea/";

/// Annotation of a ServiceImport: name of the Service that stands for it in this cluster. Gateways and dashboards of others know it (the
/// reference implementation of the Multi-Cluster Services API).
pub const DERIVED_SERVICE: &str = "multicluster.kubernetes.io/derived-service";

/// Annotation of a ServiceImport that stays against the leader's word: a hash of what the member's ClusterSet said of what is to go
/// ([`LET_GO`]) when it was withheld. Empty when it is not withheld any more.
pub const WITHHELD: &str = "multicluster.freeport.dev/withheld";

/// Annotation of a ServiceImport: which of its labels and annotations are exported ones, as JSON `{"labels": [KEY...],
/// "annotations": [KEY...]}`. Those go when they are exported no more; others are left alone.
pub const EXPORTED_METADATA: &str = "multicluster.freeport.dev/exported-metadata";

/// Annotation of an imported EndpointSlice: since when its endpoints are not ready because none of their cluster answers from here, and the
/// places of those that were not ready anyway, with spaces between.
pub const DEMOTED: &str = "multicluster.freeport.dev/demoted";

/// With a cluster ID and a dot before it, the node that endpoints of that cluster are hinted for elsewhere: nobody's.
pub const ELSEWHERE: &str = "elsewhere.multicluster.freeport.dev";

/// Annotation of a member's ServiceAccount in a Common Area: uid of the Namespace kube-system of the cluster that joined with it. Of a
/// MemberClusterAnnounce under a leader of Antrea's: uid of the cluster that renews it.
pub const CLUSTER_UID: &str = "multicluster.freeport.dev/cluster-uid";

/// Annotation of a member's ServiceAccount in a Common Area: [`ANTREA`] when the member runs Antrea's controllers.
pub const SPEAKS: &str = "multicluster.freeport.dev/speaks";

/// Value of [`SPEAKS`].
pub const ANTREA: &str = "antrea";

/// Annotation of the leader's Lease: IDs of the members that run Antrea's controllers, with commas between. Empty when there are
/// none; a Lease without it says nothing.
pub const ANTREA_MEMBERS: &str = "multicluster.freeport.dev/antrea-members";

/// Annotation of the leader's Lease: the CRDs of the records as they were when they lacked nothing, each as uid and generation with a
/// dot between, with commas between them. When it changes, the members read their records again.
pub const SCHEMAS: &str = "multicluster.freeport.dev/schemas";

/// Annotation of the leader's Lease: how many records and bytes of a member it takes in, with a space between. Members keep no more of
/// each other.
pub const QUOTA: &str = "multicluster.freeport.dev/quota";

/// Annotation of a member's ServiceAccount in a Common Area: the ranges of addresses that its endpoints may have, with commas between
/// ([`ranges`](crate::ranges)). Without it, or with none, any.
pub const ADDRESS_RANGES: &str = "multicluster.freeport.dev/address-ranges";

/// Annotation of the leader's Lease: the ranges of those members that have some, each as `ID=RANGE,RANGE...` with spaces between.
pub const MEMBER_RANGES: &str = "multicluster.freeport.dev/member-ranges";

/// Annotation of the leader's Lease: what the Leases of all members say ([`lease::digest`](crate::lease::digest)). Members watch it in
/// place of each other's Leases.
pub const MEMBERS: &str = "multicluster.freeport.dev/members";

/// Annotation of the leader's Lease: members that do not renew theirs, each with the seconds of that which the leader has counted, as
/// `ID=SECONDS` with spaces between.
pub const SILENT: &str = "multicluster.freeport.dev/silent";

/// Annotation of a member's ClusterSet: URL of a proxy by which the member reaches the leader, whatever its environment says.
pub const PROXY_URL: &str = "multicluster.freeport.dev/proxy-url";

/// Annotation of a member's ClusterSet: the name that the certificate of the leader's API server is for, where it is not that in its URL.
pub const TLS_SERVER_NAME: &str = "multicluster.freeport.dev/tls-server-name";

/// Label on every object in an importing cluster that we made, and on what the installer made: `app.kubernetes.io/managed-by`.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Value of [`MANAGED_BY`], and of [`SLICE_MANAGED_BY`].
pub const FREEPORT: &str = "freeport";

/// Field manager and reporting controller of the leader.
pub const LEADER: &str = "freeport-leader";

/// Field manager and reporting controller of a member.
pub const MEMBER: &str = "freeport-member";

/// Annotation of a member's ClusterSet: when its value changes, imports go that stay against the leader's word.
pub const LET_GO: &str = "multicluster.freeport.dev/let-go";

/// Annotation of a daemon's Lease: what API servers refuse to the daemon, empty if nothing. Also of a member's note (ConfigMap
/// `freeport-membership`) while the cluster leaves, for `freeport leave`.
pub const REFUSED: &str = "multicluster.freeport.dev/refused";

/// Annotation of the same note: addresses of imports that ended a short time ago, which they get back if they come back.
pub const ADDRESSES: &str = "multicluster.freeport.dev/addresses";

/// Value of labels and annotations that say yes.
pub const TRUE: &str = "true";

/// Value of labels and annotations that say no.
pub const FALSE: &str = "false";

/// Value of [`SETTLED`].
pub const WRITING: &str = "writing";

/// Label of a record: cluster that exports (Antrea).
pub const SOURCE_CLUSTER_ID: &str = "sourceClusterID";
/// Label of a record: Namespace of the exported object (Antrea).
pub const SOURCE_NAMESPACE: &str = "sourceNamespace";
/// Label of a record: name of the exported object (Antrea).
pub const SOURCE_NAME: &str = "sourceName";
/// Label of a record: its kind (Antrea).
pub const SOURCE_KIND: &str = "sourceKind";

/// Annotation of a ServiceAccount in a Common Area: cluster ID of the member that uses it (Antrea).
pub const CLUSTER_ID: &str = "multicluster.antrea.io/cluster-id";

/// Annotation of an imported Service (Antrea): its proxy then expects endpoints that are ClusterIPs elsewhere.
pub const IMPORTED_SERVICE: &str = "multicluster.antrea.io/imported-service";

/// Prefix of the Service that realises an import (Antrea).
pub const IMPORTED_PREFIX: &str = "antrea-mc-";

/// Label of an imported EndpointSlice: name of its ServiceImport (MCS API).
pub const MCS_SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";
/// Label of an imported EndpointSlice: cluster its endpoints live in (MCS API).
pub const MCS_SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// Label of an EndpointSlice: Service it belongs to (Kubernetes).
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Label of an EndpointSlice: who writes it (Kubernetes).
pub const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
