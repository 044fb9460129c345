//! The rules of the Multi-Cluster Services API, numbered as everywhere in this project.
//!
//! What is said of a rule without a test does not count once there is one.

/// A rule, and what there is to say of it while no test shows it.
pub(crate) struct Rule {
    /// Its number, as in `R-6a`.
    pub id: &'static str,
    /// What it is about.
    pub chapter: &'static str,
    /// The rule, in our words.
    pub says: &'static str,
    /// How it stands without a test.
    pub otherwise: Standing,
}

/// How a rule stands, but for the tests that show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does not: there has to be a test.
    Tested,
    /// A test shows how far it is held; what of it is not, and who says so.
    InPart(&'static str),
    /// It asks nothing of us, or nothing that a test could show; why.
    NotApplicable(&'static str),
    /// Not there yet; with what it comes.
    Planned(&'static str),
}

use Standing::{InPart, NotApplicable, Planned, Tested};

const VERSION: Standing = InPart(
    "CoreDNS answers `1.1.0`, the version of the names within one cluster, where the specification of the set's has `1.0.0`: \
     `DNSSchemaVersion` in [plugin/kubernetes](https://github.com/coredns/coredns/blob/v1.14.7/plugin/kubernetes/kubernetes.go), since \
     [coredns#7266](https://github.com/coredns/coredns/pull/7266)",
);
const FAMILIES: Standing = InPart(
    "an IP family that the oldest export has second, and a younger one not at all, goes with its address while both export: R-48 asks \
     for families in which all backends are reached",
);
const LABELS: Standing = InPart(
    "of a cluster whose ID has two labels, which [enhancements#3918](https://github.com/kubernetes/enhancements/pull/3918) allows, CoreDNS \
     answers no names of single endpoints, since it takes one label for the cluster: `parseRequest` in \
     [plugin/kubernetes](https://github.com/coredns/coredns/blob/v1.14.7/plugin/kubernetes/parse.go)",
);
const STALENESS: Standing = Planned("endpoints of clusters that are silent");
const ABOUT: Standing = Planned("ClusterProperties of the About API");

const fn rule(chapter: &'static str, id: &'static str, says: &'static str, otherwise: Standing) -> Rule {
    Rule { id, chapter, says, otherwise }
}

const TERMS: &str = "Names and sameness";
const EXPORT: &str = "Exporting";
const IMPORT: &str = "Importing";
const CONFLICT: &str = "Exports that differ";
const TRAFFIC: &str = "ClusterSetIP";
const SLICES: &str = "EndpointSlices";
const LEAVING: &str = "Clusters that are silent or leave";
const NAMES: &str = "DNS";
const IDENTITY: &str = "About API";
const VERSIONS: &str = "Versions";

/// All of them, chapter by chapter.
pub(crate) const RULES: &[Rule] = &[
    rule(TERMS, "1", "a cluster ID is one DNS label or two, and stays for the whole membership", Tested),
    rule(TERMS, "2", "another cluster ID means leaving and joining", Tested),
    rule(
        TERMS,
        "3",
        "a ServiceExport exports the Service of its own name and Namespace in its own cluster",
        Tested,
    ),
    rule(TERMS, "4", "exports of one name and Namespace in several clusters are one Service", Tested),
    rule(TERMS, "5", "without a ServiceExport a Service contributes nothing", Tested),
    rule(TERMS, "6", "what a cluster does with its own Services stays as it was", Tested),
    rule(
        TERMS,
        "6a",
        "NetworkPolicies, placement of workloads, the registry of clusters and limits of scale are not part of the API",
        NotApplicable("it lists what the API leaves open"),
    ),
    rule(TERMS, "7", "administrators can restrict what is exported", Tested),
    rule(
        EXPORT,
        "8",
        "a Service of type ExternalName is not exported: `Valid=False`, `InvalidServiceType`",
        Tested,
    ),
    rule(EXPORT, "9", "without a Service `Valid=False`, `NoService`, until there is one", Tested),
    rule(EXPORT, "10", "what can be exported is `Valid=True` soon", Tested),
    rule(
        EXPORT,
        "11",
        "`Ready` is `Pending` on the way, `Exported` once the leader has it, `Failed` with the cause otherwise",
        Tested,
    ),
    rule(
        EXPORT,
        "12",
        "ClusterIP, NodePort and LoadBalancer are exported as ClusterSetIP, `clusterIP: None` as Headless",
        Tested,
    ),
    rule(
        EXPORT,
        "13",
        "who takes an export back takes its endpoints, its ports and its say in conflicts along",
        Tested,
    ),
    rule(
        EXPORT,
        "14",
        "a Service that is deleted is withdrawn, and exported again with the age of the export when it is back",
        Tested,
    ),
    rule(EXPORT, "15", "an export needs no ready endpoint", Tested),
    rule(
        EXPORT,
        "16",
        "conditions name the generation they are about, and their time moves only with their status",
        Tested,
    ),
    rule(EXPORT, "17", "an imported Service is not exported again", Tested),
    rule(
        IMPORT,
        "18",
        "every cluster of the set that has the Namespace has one ServiceImport, exporters too",
        Tested,
    ),
    rule(IMPORT, "19", "a missing Namespace is not created", Tested),
    rule(
        IMPORT,
        "20",
        "a Namespace that appears later gets its imports; one that goes holds nothing up",
        Tested,
    ),
    rule(
        IMPORT,
        "21",
        "a ServiceImport is there as long as somebody exports, and gone everywhere after that",
        Tested,
    ),
    rule(
        IMPORT,
        "22",
        "one of several exporters may leave, and the ServiceImport is not deleted for a moment",
        Tested,
    ),
    rule(IMPORT, "23", "the controller alone owns ServiceImports", Tested),
    rule(IMPORT, "24", "what is wrong with an import is said in its conditions", Tested),
    rule(IMPORT, "25", "the type is right when the ServiceImport is first written", Tested),
    rule(IMPORT, "26", "`ips` and `ipFamilies` agree in number and order, in one write", Tested),
    rule(IMPORT, "27", "a headless import never has `ips`", Tested),
    rule(
        IMPORT,
        "28",
        "ports are as exported: name, number, application protocol, and a protocol that is always said",
        Tested,
    ),
    rule(IMPORT, "29", "session affinity and traffic policies are passed on literally", Tested),
    rule(
        IMPORT,
        "30",
        "exported labels and annotations are on the ServiceImport, those of Service and ServiceExport are not",
        Tested,
    ),
    rule(IMPORT, "31", "the address stays as long as the import", Tested),
    rule(IMPORT, "32", "`status.endpointSliceObjects` is said", Tested),
    rule(IMPORT, "33", "`status.clusters` are exactly those that contribute", Tested),
    rule(IMPORT, "36", "users who are no administrators do not write ServiceImports", Tested),
    rule(CONFLICT, "34", "the oldest export wins", Tested),
    rule(CONFLICT, "35", "of equal age, the first by cluster ID", Tested),
    rule(
        CONFLICT,
        "37",
        "all exporters are told of a conflict: field, value used, whose it is, how many disagree",
        Tested,
    ),
    rule(CONFLICT, "38", "a conflict that comes up does not disturb traffic", FAMILIES),
    rule(CONFLICT, "39", "several reasons are joined by commas; none is `NoConflicts`", Tested),
    rule(
        CONFLICT,
        "40",
        "ports are united, by name and then by protocol and number; of doubles the oldest stays",
        Tested,
    ),
    rule(CONFLICT, "41", "any difference of ports is a conflict, one more port as well", Tested),
    rule(CONFLICT, "42", "traffic for a port goes only to clusters that expose that very port", Tested),
    rule(CONFLICT, "43", "a port that somebody names otherwise is reached under the merged name", Tested),
    rule(CONFLICT, "44", "the oldest export decides whether the import is headless", Tested),
    rule(CONFLICT, "45", "of session affinity and its settings the oldest one's are used", Tested),
    rule(CONFLICT, "46", "so are traffic policies, where nothing said means `Cluster`", Tested),
    rule(CONFLICT, "47", "labels and annotations are those of the oldest, as a whole", Tested),
    rule(CONFLICT, "48", "IP families that let clients reach only some backends are a conflict", Tested),
    rule(TRAFFIC, "49", "the address of an import leads to the backends of all exporters", Tested),
    rule(TRAFFIC, "50", "who uses the local name stays in the cluster", Tested),
    rule(
        SLICES,
        "51",
        "each importing cluster has slices in the Namespace of the import, exporters too",
        Tested,
    ),
    rule(SLICES, "52", "a slice holds endpoints of one cluster and one address type", Tested),
    rule(SLICES, "53", "slices have the labels of the API, and say that not Kubernetes writes them", Tested),
    rule(SLICES, "54", "names of ports are those of the import, numbers those of the endpoints", Tested),
    rule(SLICES, "55", "slices go with the export", Tested),
    rule(SLICES, "56", "host name, zone and conditions of endpoints are carried", Tested),
    rule(SLICES, "57", "`status.endpointSliceObjects` is `Present`", Tested),
    rule(LEAVING, "58", "endpoints of a cluster that cannot be reached are removed", STALENESS),
    rule(
        LEAVING,
        "59",
        "who leaves takes its property `clusterset.k8s.io` away, and keeps its ID until then",
        ABOUT,
    ),
    rule(
        LEAVING,
        "60",
        "who leaves withdraws its exports and removes its imports, also without the leader, also without the member",
        STALENESS,
    ),
    rule(LEAVING, "61", "without the leader imports stay", STALENESS),
    rule(NAMES, "62", "`dns-version` is a TXT record", VERSION),
    rule(NAMES, "63", "a ClusterSetIP has A and AAAA records of its addresses", Tested),
    rule(NAMES, "64", "each named port of a ClusterSetIP has an SRV record", Tested),
    rule(NAMES, "65", "SRV of the bare name has one record for each number and target", Tested),
    rule(NAMES, "66", "there are no names of single clusters", Tested),
    rule(NAMES, "67", "a headless import has the addresses of the ready endpoints of all clusters", Tested),
    rule(NAMES, "68", "each endpoint of a headless import has a name with host name and cluster ID", Tested),
    rule(NAMES, "69", "SRV of a headless import has a record for each ready endpoint and named port", Tested),
    rule(NAMES, "70", "addresses of SRV targets may come along", Tested),
    rule(NAMES, "71", "names keep to 63 and 253 characters, and are parsed from the right", LABELS),
    rule(
        NAMES,
        "72",
        "SRV of a headless import has the endpoints' numbers; what exists without such a record is no error",
        Tested,
    ),
    rule(
        IDENTITY,
        "73",
        "`cluster.clusterset.k8s.io` is unique in the set and stays for the membership",
        ABOUT,
    ),
    rule(
        IDENTITY,
        "74",
        "`clusterset.k8s.io` is there for the membership, unchanged, and not otherwise",
        ABOUT,
    ),
    rule(IDENTITY, "75", "a cluster with a duplicate or missing ID is refused, and told what to do", ABOUT),
    rule(IDENTITY, "76", "no properties of our own end in `.k8s.io` or `.kubernetes.io`", ABOUT),
    rule(IDENTITY, "77", "both properties are watched", ABOUT),
    rule(
        VERSIONS,
        "78",
        "the installed version of the CRDs is served, and fields we do not know survive",
        Tested,
    ),
];
