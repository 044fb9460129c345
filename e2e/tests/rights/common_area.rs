//! What a member's credential does not reach at all: Secrets of the Common Area, and everything outside of it.

use e2e::fixture::AREA;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{Api, api::ApiResource};

use crate::rights::{
    attempt::{Attempt, Do, try_all},
    parties::{OTHER_AREA, shared},
    records,
};

fn attempt<K: kube::Resource<DynamicType = ()>>(what: &'static str, todo: Do) -> Attempt {
    Attempt { what, kind: ApiResource::erase::<K>(&()), todo, says: "" }
}

#[e2e::test]
fn a_member_reads_no_secret_of_the_common_area() {
    shared(async |parties| {
        let attempts = [
            attempt::<Secret>("its own token", Do::Get("freeport-member-east-token".into())),
            attempt::<Secret>("another's token", Do::Get("freeport-member-west-token".into())),
            attempt::<Secret>("all Secrets", Do::List),
            attempt::<ConfigMap>("ConfigMaps", Do::List),
        ];
        try_all(&parties.east, AREA, &attempts, |_, refusal| refusal.code != 403).await;
    });
}

#[e2e::test]
fn a_member_is_nobody_in_other_namespaces() {
    shared(async |parties| {
        let in_another = [
            Attempt { what: "read records", kind: records::exports(), todo: Do::List, says: "" },
            Attempt {
                what: "write a record",
                kind: records::exports(),
                todo: Do::Create(records::service("east", "shop", "web")),
                says: "",
            },
        ];
        try_all(&parties.east, OTHER_AREA, &in_another, |_, refusal| refusal.code != 403).await;
        let elsewhere = [
            attempt::<ConfigMap>("list ConfigMaps", Do::List),
            attempt::<Secret>("list Secrets", Do::List),
            Attempt {
                what: "write a record",
                kind: records::exports(),
                todo: Do::Create(records::service("east", "shop", "web")),
                says: "",
            },
        ];
        try_all(&parties.east, "default", &elsewhere, |_, refusal| refusal.code != 403).await;
        let namespaces = Api::<Namespace>::all(parties.east.clone());
        let listed = namespaces.list(&kube::api::ListParams::default()).await;
        assert!(matches!(&listed, Err(kube::Error::Api(status)) if status.code == 403), "{listed:?}");
    });
}
