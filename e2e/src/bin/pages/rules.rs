//! The rules of the Multi-Cluster Services API, numbered as everywhere in this project.
//!
//! The standing that a rule has here counts only while no test names the rule, except `InPart`.

/// A rule, and its standing while no test shows it.
pub(crate) struct Rule {
    /// Its number, as in `R-6a`.
    pub id: &'static str,
    /// What it is about.
    pub chapter: &'static str,
    /// The rule, in our words.
    pub says: &'static str,
    /// Its standing without a test.
    pub otherwise: Standing,
}

/// How far Freeport holds a rule, apart from the tests that show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A test must show it.
    Tested,
    /// A test shows a part of it; the text says which part is not held, and why.
    InPart(&'static str),
    /// It demands nothing of Freeport, or nothing that a test could show; the text says why.
    NotApplicable(&'static str),
}

use Standing::{InPart, NotApplicable, Tested};

const VERSION: Standing = InPart(
    "CoreDNS answers `1.1.0`, the version of the names within one cluster; the specification for the set demands `1.0.0`: \
     `DNSSchemaVersion` in [plugin/kubernetes](https://github.com/coredns/coredns/blob/v1.14.7/plugin/kubernetes/kubernetes.go), since \
     [coredns#7266](https://github.com/coredns/coredns/pull/7266)",
);
const FAMILIES: Standing = InPart(
    "while the oldest export has a second IP family and a younger export does not have it, that family and its address are not \
     used: R-48 demands families in which all backends can be reached",
);
const LABELS: Standing = InPart(
    "if a cluster ID has two labels, which [enhancements#3918](https://github.com/kubernetes/enhancements/pull/3918) allows, CoreDNS does \
     not answer names of single endpoints of that cluster, because it expects one label for the cluster: `parseRequest` in \
     [plugin/kubernetes](https://github.com/coredns/coredns/blob/v1.14.7/plugin/kubernetes/parse.go)",
);
const NO_OTHERS: Standing = NotApplicable("Freeport has no properties but the two of the About API");

const fn rule(chapter: &'static str, id: &'static str, says: &'static str, otherwise: Standing) -> Rule {
    Rule { id, chapter, says, otherwise }
}

const TERMS: &str = "Identity and sameness";
const EXPORT: &str = "Exporting";
const IMPORT: &str = "Importing";
const CONFLICT: &str = "Conflicts";
const TRAFFIC: &str = "ClusterSetIP";
const SLICES: &str = "EndpointSlices";
const LEAVING: &str = "Clusters that are unreachable or leave";
const NAMES: &str = "DNS";
const IDENTITY: &str = "About API";
const VERSIONS: &str = "Versions";

/// All rules, chapter by chapter.
pub(crate) const RULES: &[Rule] = &[
    rule(
        TERMS,
        "1",
        "a cluster ID has one or two DNS labels, and does not change during a membership",
        Tested,
    ),
    rule(TERMS, "2", "to change its ID, a cluster leaves and joins again", Tested),
    rule(
        TERMS,
        "3",
        "a ServiceExport exports the Service of its own name and Namespace in its own cluster",
        Tested,
    ),
    rule(TERMS, "4", "exports with the same name and Namespace in several clusters are one Service", Tested),
    rule(TERMS, "5", "a Service without a ServiceExport contributes nothing", Tested),
    rule(TERMS, "6", "a cluster uses its own Services as it did before", Tested),
    rule(
        TERMS,
        "6a",
        "NetworkPolicies, placement of workloads, the registry of clusters and scale limits are not part of the API",
        NotApplicable("the API leaves these open"),
    ),
    rule(TERMS, "7", "administrators can restrict what is exported", Tested),
    rule(
        EXPORT,
        "8",
        "a Service of type ExternalName is not exported: `Valid=False`, `InvalidServiceType`",
        Tested,
    ),
    rule(
        EXPORT,
        "9",
        "a ServiceExport without a Service has `Valid=False`, `NoService`, until the Service exists",
        Tested,
    ),
    rule(EXPORT, "10", "an export that is possible gets `Valid=True` soon", Tested),
    rule(
        EXPORT,
        "11",
        "`Ready` has reason `Pending` until the leader answers, `Exported` when the leader has merged the export, `Failed` with the cause otherwise",
        Tested,
    ),
    rule(
        EXPORT,
        "12",
        "Services of type ClusterIP, NodePort and LoadBalancer are exported as ClusterSetIP, those with `clusterIP: None` as Headless",
        Tested,
    ),
    rule(
        EXPORT,
        "13",
        "when an export ends, its endpoints, its ports and its influence on conflicts go",
        Tested,
    ),
    rule(
        EXPORT,
        "14",
        "when an exported Service is deleted, it is withdrawn; when it is created again, it is exported again with the age of the ServiceExport",
        Tested,
    ),
    rule(EXPORT, "15", "an export needs no ready endpoint", Tested),
    rule(
        EXPORT,
        "16",
        "conditions have the generation that they are about, and their transition time changes only with their status",
        Tested,
    ),
    rule(EXPORT, "17", "an imported Service is not exported again", Tested),
    rule(
        IMPORT,
        "18",
        "every cluster of the set that has the Namespace has one ServiceImport, exporters included",
        Tested,
    ),
    rule(IMPORT, "19", "Freeport does not create a missing Namespace", Tested),
    rule(
        IMPORT,
        "20",
        "a Namespace that is created later gets its imports; one that is being deleted blocks nothing",
        Tested,
    ),
    rule(
        IMPORT,
        "21",
        "a ServiceImport exists while at least one cluster exports, and is then removed in all clusters",
        Tested,
    ),
    rule(
        IMPORT,
        "22",
        "when one of several exporters leaves, the ServiceImport is never deleted, not even for a moment",
        Tested,
    ),
    rule(IMPORT, "23", "the controller alone owns ServiceImports", Tested),
    rule(IMPORT, "24", "the conditions of an import report what is wrong with it", Tested),
    rule(IMPORT, "25", "the type is correct when the ServiceImport is created", Tested),
    rule(IMPORT, "26", "`ips` and `ipFamilies` agree in number and order, in one write", Tested),
    rule(IMPORT, "27", "a headless import never has `ips`", Tested),
    rule(
        IMPORT,
        "28",
        "ports are as exported: name, number, application protocol, and protocol, which is always set",
        Tested,
    ),
    rule(IMPORT, "29", "session affinity and traffic policies are passed on unchanged", Tested),
    rule(
        IMPORT,
        "30",
        "the ServiceImport has the exported labels and annotations, but not those of the Service and the ServiceExport",
        Tested,
    ),
    rule(IMPORT, "31", "the address does not change while the import exists", Tested),
    rule(IMPORT, "32", "`status.endpointSliceObjects` is set", Tested),
    rule(IMPORT, "33", "`status.clusters` lists exactly the clusters that contribute", Tested),
    rule(IMPORT, "36", "users who are not administrators cannot write ServiceImports", Tested),
    rule(CONFLICT, "34", "the oldest export wins", Tested),
    rule(CONFLICT, "35", "among exports of equal age, the first by cluster ID wins", Tested),
    rule(
        CONFLICT,
        "37",
        "every exporter sees a conflict: field, value used, whose value it is, how many disagree",
        Tested,
    ),
    rule(CONFLICT, "38", "a new conflict does not disturb traffic", FAMILIES),
    rule(
        CONFLICT,
        "39",
        "several reasons are joined with commas; without a conflict the reason is `NoConflicts`",
        Tested,
    ),
    rule(
        CONFLICT,
        "40",
        "ports are united, by name and then by protocol and number; of duplicates, the port of the oldest export is used",
        Tested,
    ),
    rule(CONFLICT, "41", "any difference in ports is a conflict, an additional port too", Tested),
    rule(CONFLICT, "42", "traffic for a port goes only to clusters that expose exactly this port", Tested),
    rule(CONFLICT, "43", "a port that a cluster names differently is reached under the merged name", Tested),
    rule(CONFLICT, "44", "the oldest export decides whether the import is headless", Tested),
    rule(CONFLICT, "45", "session affinity and its settings are those of the oldest export", Tested),
    rule(
        CONFLICT,
        "46",
        "traffic policies are those of the oldest export; an unset policy means `Cluster`",
        Tested,
    ),
    rule(CONFLICT, "47", "labels and annotations are those of the oldest export, as a whole", Tested),
    rule(CONFLICT, "48", "IP families that let clients reach only some backends are a conflict", Tested),
    rule(TRAFFIC, "49", "the address of an import leads to the backends of all exporters", Tested),
    rule(TRAFFIC, "50", "a client that uses the local name stays in its cluster", Tested),
    rule(
        SLICES,
        "51",
        "each importing cluster has slices in the Namespace of the import, exporters included",
        Tested,
    ),
    rule(SLICES, "52", "a slice holds endpoints of one cluster and one address type", Tested),
    rule(
        SLICES,
        "53",
        "slices have the labels of the API, and a label that says that Kubernetes does not manage them",
        Tested,
    ),
    rule(SLICES, "54", "port names are those of the import, port numbers those of the endpoints", Tested),
    rule(SLICES, "55", "slices are removed with the export", Tested),
    rule(SLICES, "56", "host name, zone and conditions of endpoints are passed on", Tested),
    rule(SLICES, "57", "`status.endpointSliceObjects` is `Present`", Tested),
    rule(LEAVING, "58", "endpoints of a cluster that cannot be reached are removed", Tested),
    rule(
        LEAVING,
        "59",
        "a cluster that leaves removes its property `clusterset.k8s.io`, and keeps its ID until then",
        Tested,
    ),
    rule(
        LEAVING,
        "60",
        "when a cluster leaves, its exports are withdrawn and its imports removed, also without the leader, and also without the member",
        Tested,
    ),
    rule(LEAVING, "61", "imports stay while the leader is unreachable", Tested),
    rule(NAMES, "62", "`dns-version` is a TXT record", VERSION),
    rule(NAMES, "63", "a ClusterSetIP has A and AAAA records of its addresses", Tested),
    rule(NAMES, "64", "each named port of a ClusterSetIP has an SRV record", Tested),
    rule(NAMES, "65", "SRV of the bare name has one record for each number and target", Tested),
    rule(NAMES, "66", "there is no name `<cluster>.<service>.<namespace>.svc.clusterset.local`", Tested),
    rule(NAMES, "67", "a headless import has the addresses of the ready endpoints of all clusters", Tested),
    rule(NAMES, "68", "each endpoint of a headless import has a name with host name and cluster ID", Tested),
    rule(NAMES, "69", "SRV of a headless import has a record for each ready endpoint and named port", Tested),
    rule(NAMES, "70", "an answer may contain the addresses of SRV targets", Tested),
    rule(
        NAMES,
        "71",
        "labels have at most 63 and names at most 253 characters, and names are parsed from the right",
        LABELS,
    ),
    rule(
        NAMES,
        "72",
        "SRV records of a headless import have the port numbers of the endpoints; an existing name without a record of the asked type is not an error",
        Tested,
    ),
    rule(
        IDENTITY,
        "73",
        "`cluster.clusterset.k8s.io` is unique in the set and does not change during a membership",
        Tested,
    ),
    rule(IDENTITY, "74", "`clusterset.k8s.io` exists, unchanged, exactly while the membership lasts", Tested),
    rule(
        IDENTITY,
        "75",
        "a cluster with a duplicate or missing ID is refused, with a message that says what to do",
        Tested,
    ),
    rule(
        IDENTITY,
        "76",
        "the names of our own properties do not end in `.k8s.io` or `.kubernetes.io`",
        NO_OTHERS,
    ),
    rule(IDENTITY, "77", "both properties are watched", Tested),
    rule(
        VERSIONS,
        "78",
        "Freeport works with the installed version of the CRDs, and fields that it does not know survive",
        Tested,
    ),
];
