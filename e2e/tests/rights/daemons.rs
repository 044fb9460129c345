//! The daemons need nothing that the policies refuse.

use api::mcs::{ServiceExport, ServiceImport};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::fixture::{create, eventually, with_daemons};

#[test]
fn a_service_gets_from_one_cluster_to_another_and_back() {
    with_daemons(async |world| {
        let space = "rights-daemons";
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for cluster in [&east, &west] {
            create(&Api::<Namespace>::all(cluster.clone()), json!({"metadata": {"name": space}})).await;
        }
        let web = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}});
        create(&Api::<Service>::namespaced(east.clone(), space), web).await;
        let exports = Api::<ServiceExport>::namespaced(east, space);
        create(&exports, json!({"metadata": {"name": "web"}, "spec": {}})).await;

        let imports = Api::<ServiceImport>::namespaced(west, space);
        eventually("the import is ready", || async {
            let import = imports.get_opt("web").await.unwrap();
            let status = import.as_ref().and_then(|import| import.status.as_ref());
            let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
            match conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True") {
                true => Ok(()),
                false => Err(format!("{import:?}")),
            }
        })
        .await;
        exports.delete("web", &DeleteParams::default()).await.unwrap();
        eventually("the import is gone", || async {
            imports.get_opt("web").await.unwrap().map_or(Ok(()), |import| Err(format!("{import:?}")))
        })
        .await;
    });
}
