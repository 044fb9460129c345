//! What a stolen credential tries to write, for each resource that it may write: its own, what others have, and what pretends to be
//! another's. A resource without a target fails the test, so that a new right gets one.

mod offload;

use api::{
    ServiceName, about,
    mcs::{ServiceExport, ServiceImport},
    name::{announce, member_lease},
};
use cli::objects::access;
use e2e::fixture::SYSTEM;
use k8s_openapi::api::{
    core::v1::{Service, ServiceAccount},
    discovery::v1::EndpointSlice,
};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::rights::{
    attempt::{Do, EVERYWHERE},
    parties::Parties,
    records,
    samples::{self, event, ours},
};

pub(super) use self::offload::{ENABLED, TWIN};

/// One resource to write.
pub(super) struct Target {
    /// As discovery names it.
    pub(super) resource: &'static str,
    pub(super) kind: ApiResource,
    pub(super) namespace: String,
    /// Other Namespaces with objects that it must not touch.
    pub(super) others_in: Vec<String>,
    /// An object of its own; none where it has none.
    pub(super) own: Option<Value>,
    /// One more that it may create, where it may create more than one.
    pub(super) another: Option<Value>,
    /// One more of its own that is there.
    pub(super) also_own: Option<&'static str>,
    /// What it must not create.
    pub(super) squats: Vec<Value>,
    /// The administrator creates what is its own; it creates that again by apply, since its right goes by the name.
    pub(super) is_given: bool,
}

impl Target {
    fn new(resource: &'static str, kind: ApiResource, namespace: &str) -> Self {
        Self {
            resource,
            kind,
            namespace: namespace.to_owned(),
            others_in: Vec::new(),
            own: None,
            another: None,
            also_own: None,
            squats: Vec::new(),
            is_given: false,
        }
    }
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// Records and Leases in the Common Area, where `south` and a leader have some.
pub(super) fn at_the_leader(us: &str) -> Vec<Target> {
    let area = e2e::fixture::AREA;
    let of = |cluster: &str| named(&member_lease(cluster));
    let announced = |by: &str, of: &str| json!({"metadata": {"name": announce(by)}, "clusterID": of});
    let of_south = |mut record: Value| {
        record["metadata"]["labels"]["sourceClusterID"] = json!("south");
        record
    };
    let in_souths_name = |mut record: Value| {
        record["metadata"]["name"] = json!("south-shop-squat-service");
        record
    };
    let web = ServiceName::new("hostile", "web");
    let of_kind = |kind: &str| records::record("eve-free", us, &web, kind, &json!({}));
    vec![
        Target {
            own: Some(records::service(us, "hostile", "web")),
            another: Some(records::slice(us, "hostile", "web")),
            squats: vec![
                records::service("south", "shop", "squat"),
                records::slice("south", "shop", "squat"),
                in_souths_name(records::service(us, "shop", "squat")),
                of_south(records::service(us, "shop", "squat")),
                of_kind("AntreaClusterNetworkPolicy"),
                of_kind("Raw"),
            ],
            ..Target::new("resourceexports", records::exports(), area)
        },
        Target {
            own: Some(of(us)),
            squats: vec![
                of("south"),
                of("away"),
                named("freeport-leader"),
                named("freeport-leader-2"),
                named("free"),
            ],
            ..Target::new("leases", records::leases(), area)
        },
        Target {
            own: Some(announced(us, us)),
            squats: vec![
                announced("south", "south"),
                announced("away", us),
                announced(us, "south"),
                named("free"),
            ],
            ..Target::new("memberclusterannounces", records::announces(), area)
        },
        Target {
            own: Some(named(us)),
            squats: vec![named("south"), named("away"), named("free")],
            ..Target::new("clusterreports", records::reports(), area)
        },
        Target { own: Some(named(us)), ..Target::new("clusterreports/status", records::reports(), area) },
        Target {
            own: Some(records::map(us, "south")),
            another: Some(records::map(us, "away")),
            squats: vec![records::map("south", us), records::map("away", "south"), records::map(us, us)],
            ..Target::new("namespacemaps", records::maps(), area)
        },
        Target {
            own: Some(records::map("away", us)),
            ..Target::new("namespacemaps/status", records::maps(), area)
        },
        Target {
            own: Some(records::offer(us, "south")),
            another: Some(records::offer(us, "away")),
            squats: vec![records::offer("south", us), records::offer(us, us)],
            ..Target::new("offloadoffers", records::offers(), area)
        },
        Target {
            own: Some(records::shadow(us, "south")),
            another: Some(records::shadow(us, "away")),
            squats: vec![
                records::shadow("south", us),
                records::shadow("away", "south"),
                records::shadow(us, us),
            ],
            ..Target::new("shadowpods", records::shadows(), area)
        },
        Target {
            own: Some(records::shadow("away", us)),
            ..Target::new("shadowpods/status", records::shadows(), area)
        },
        Target {
            own: Some(named(&access::account(us))),
            squats: vec![named(&access::account("east")), named("default")],
            ..Target::new("serviceaccounts/token", ApiResource::erase::<ServiceAccount>(&()), area)
        },
    ]
}

/// What the member writes in its own cluster, where Kubernetes and users have objects.
pub(super) async fn in_its_own_cluster(parties: &Parties, space: &str) -> Vec<Target> {
    let admin = parties.world.leader();
    let theirs = json!({"name": "antrea-mc-theirs", "labels": {"app": "shop"}});
    let _: Service = admin.create(space, samples::service(&theirs)).await;
    let _: EndpointSlice = admin.create(space, samples::slice(theirs.clone(), "antrea-mc-theirs")).await;
    let _: ServiceImport = admin.create(space, samples::import(&theirs)).await;
    let _: ServiceExport = admin.create(space, json!({"metadata": {"name": "web"}, "spec": {}})).await;
    for (kind, object) in [
        (samples::endpoints(), samples::core_endpoints(&theirs)),
        (samples::events(), event(space, "theirs", "kubelet")),
    ] {
        Do::Create(object).by(&admin.client, space, &kind).await.unwrap();
    }
    let mut targets = offload::targets(parties, space).await;
    let target = |resource, kind| Target {
        others_in: vec!["default".into(), "kube-system".into()],
        ..Target::new(resource, kind, space)
    };
    let (web, plain) = (ours("antrea-mc-web"), json!({"name": "antrea-mc-plain"}));
    let slice = |name: &str, of: &str| samples::slice(ours(name), of);
    targets.extend(vec![
        Target {
            own: Some(samples::service(&web)),
            squats: vec![samples::service(&plain), samples::service(&ours("web"))],
            ..target("services", samples::services())
        },
        Target {
            own: Some(slice("antrea-mc-web-1", "antrea-mc-web")),
            squats: vec![
                samples::slice(plain.clone(), ""),
                slice("antrea-mc-web-2", "kubernetes"),
                slice("kubernetes", "antrea-mc-web"),
            ],
            ..target("endpointslices", samples::slices())
        },
        Target {
            own: Some(samples::core_endpoints(&web)),
            squats: vec![samples::core_endpoints(&plain), samples::core_endpoints(&ours("web"))],
            ..target("endpoints", samples::endpoints())
        },
        Target {
            own: Some(samples::import(&ours("web"))),
            squats: vec![samples::import(&plain)],
            ..target("serviceimports", samples::imports())
        },
        Target { own: Some(named("web")), ..target("serviceimports/status", samples::imports()) },
        target("serviceexports/status", samples::exports()),
        Target {
            own: Some(event(space, "web.1", "freeport-member")),
            squats: vec![event(space, "web.2", "kubelet")],
            ..target("events", samples::events())
        },
        Target {
            own: Some(named("freeport-membership")),
            squats: vec![named("other"), json!({"metadata": ours("other")})],
            ..Target::new("configmaps", samples::config_maps(), SYSTEM)
        },
        Target {
            own: Some(named("freeport-member")),
            squats: vec![named("freeport-leader"), json!({"metadata": ours("other")})],
            ..Target::new("leases", samples::leases(), SYSTEM)
        },
        Target {
            own: Some(samples::property(&ours(about::CLUSTER_SET))),
            squats: vec![
                samples::property(&ours("hostile.example.org")),
                samples::property(&json!({"name": about::CLUSTER_SET})),
            ],
            ..Target::new("clusterproperties", samples::properties(), EVERYWHERE)
        },
        Target::new("clustersets/status", ApiResource::erase::<api::cluster_set::ClusterSet>(&()), SYSTEM),
    ]);
    targets
}
