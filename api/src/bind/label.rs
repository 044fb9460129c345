//! Keys on objects that a contract is about, and on those of the contract itself.

/// On a CRD of the provider: its API may be offered. The value is `true`.
pub const EXPORTED: &str = "kube-bind.io/exported";

/// On a BoundSchema and an APIServiceExport: a hash of the schemas. A konnector looks at them again when it changes.
pub const SOURCE_SPEC_HASH: &str = "kube-bind.io/source-spec-hash";

/// On a copy at the provider: whose it is, by the name of the cluster namespace.
pub const CLUSTER_NAMESPACE: &str = "kube-bind.io/cluster-namespace";
/// On a copy at the provider: the Namespace of the consumer's object.
pub const CONSUMER_NAMESPACE: &str = "kube-bind.io/consumer-namespace";
/// On a copy at the provider: the uid of the consumer's object.
pub const CONSUMER_UID: &str = "kube-bind.io/consumer-uid";
/// On a copy at the provider: the uid of the APIServiceBinding by which it was made, or taken over. Another one does not miss its object.
pub const BINDING_UID: &str = "multicluster.freeport.dev/binding-uid";
/// On the consumer's object: the Namespace of its copy.
pub const PROVIDER_NAMESPACE: &str = "kube-bind.io/provider-namespace";
/// On the consumer's object: the uid of its copy.
pub const PROVIDER_UID: &str = "kube-bind.io/provider-uid";

/// On a Namespace of the provider: which APIServiceNamespace it was made for, as `<cluster namespace>/<name>`.
pub const API_SERVICE_NAMESPACE: &str = "kube-bind.io/api-service-namespace";
/// On a Namespace of the provider that was made for one consumer: `true` where others have objects in it, too.
pub const SHARED: &str = "multicluster.freeport.dev/shared";
/// On what both sides may own: `provider` or `consumer`.
pub const OWNER: &str = "kube-bind.io/owner";
/// On an APIServiceBinding: what it binds, for people.
pub const RESOURCES: &str = "kube-bind.io/resources";

/// On a cluster namespace and its ClusterBinding: who the consumer is.
pub const IDENTITY: &str = "backend.kube-bind.io/identity";
/// On a cluster namespace and its ClusterBinding: who asked for it.
pub const AUTHOR: &str = "backend.kube-bind.io/author";
/// On a ClusterBinding: what people call the consumer.
pub const CLUSTER_PRETTY_NAME: &str = "backend.kube-bind.io/cluster-pretty-name";

/// Holds an object of the consumer until its copy is gone. Without a dash, other than the group.
pub const FINALIZER: &str = "kubebind.io/syncer";

/// Annotation of an object, or of a Namespace, of a provider: a consumer's copy may take its place.
pub const ADOPT: &str = "multicluster.freeport.dev/adopt";
/// Label of a Secret of a consumer: `true` where it is a credential although no binding uses it yet.
pub const PROVIDER_KUBECONFIG: &str = "kube-bind.io/provider-kubeconfig";
/// Annotation of a Secret and of a ClusterRole of a consumer: names of the APIServiceBindings that it is there for, with commas between.
pub const BINDINGS: &str = "multicluster.freeport.dev/bindings";
/// Annotation of an APIServiceBinding: uid of the cluster namespace that it is with, which says so when the credential and the export are gone.
pub const CONTRACT_UID: &str = "multicluster.freeport.dev/contract-uid";
/// Annotation of an APIServiceBinding: what becomes of the copies when it goes.
pub const DELETION_POLICY: &str = "multicluster.freeport.dev/deletion-policy";
/// Value of [`DELETION_POLICY`]: they stay.
pub const ORPHAN: &str = "Orphan";

/// Label of a Namespace of a provider that is there for a consumer: [`CONTRACT`] or [`OBJECTS`].
pub const BIND: &str = "multicluster.freeport.dev/bind";
/// Value of [`BIND`]: it is a cluster namespace.
pub const CONTRACT: &str = "contract";
/// Value of [`BIND`]: it stands for a Namespace of a consumer.
pub const OBJECTS: &str = "objects";
/// Annotation of a cluster namespace: names of the templates that the consumer was granted, with commas between.
pub const GRANTED_TEMPLATES: &str = "multicluster.freeport.dev/granted-templates";
/// Annotation of a cluster namespace, which an administrator sets: `true` where its consumer reads objects of the whole cluster also under
/// isolation Namespaced. Go's konnector cannot do with less.
pub const READS_ALL: &str = "multicluster.freeport.dev/reads-all";
/// Annotation of a template: the isolation of what it grants, whatever the leader's flag says.
pub const ISOLATION: &str = "multicluster.freeport.dev/isolation";
/// Annotation of the Secret with a credential: when it is renewed.
pub const RENEW_AT: &str = "multicluster.freeport.dev/renew-at";
/// Annotation of a Secret with a credential: uid of the ServiceAccount that the token is of.
pub const ACCOUNT_UID: &str = "multicluster.freeport.dev/account-uid";
/// Finalizer: what was made for it goes first.
pub const BIND_FINALIZER: &str = "multicluster.freeport.dev/bind";
