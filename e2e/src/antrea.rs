//! A member that runs Antrea's controllers, played: it writes into the Common Area what those write, in their way (objects are
//! replaced whole, records are deleted with their finalizer standing), and has the rights of such a member alone.

use api::{
    ServiceName,
    announce::{MemberClusterAnnounce, MemberClusterAnnounceFields},
    antrea::{RECORD_FINALIZERS, TOUCHED, endpoints_export, service_export},
    label, name,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use cli::objects::access;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    account::by_token,
    fixture::{AREA, SET, World},
    waiting::eventually,
};

/// A port of its Service: name and number.
pub type Port<'a> = (&'a str, i32);

pub struct AntreaMember {
    pub id: String,
    pub client: Client,
    area: String,
    world: &'static World,
}

impl AntreaMember {
    /// Lets it in as `manifests/join-antrea.yaml` does, and waits until its rights are known.
    pub async fn join(world: &'static World, id: &str) -> Self {
        for object in access::antrea_objects(SET, id) {
            let body: DynamicObject = serde_json::from_value(object.body.clone()).unwrap();
            let api =
                Api::<DynamicObject>::namespaced_with(world.leader().client.clone(), AREA, &object.resource);
            api.create(&PostParams::default(), &body).await.unwrap();
        }
        let client = by_token(world, "leader", AREA, &access::account(id)).await;
        let member = Self::within(world, client, AREA, id);
        eventually("its rights are known", || async {
            let listed = member.records().list(&ListParams::default()).await;
            listed.map(drop).map_err(|error| error.to_string())
        })
        .await;
        member
    }

    /// One that belongs to another Common Area.
    pub fn within(world: &'static World, client: Client, area: &str, id: &str) -> Self {
        Self { id: id.to_owned(), client, area: area.to_owned(), world }
    }

    /// Takes back what let it in.
    pub async fn expel(&self) {
        for object in access::antrea_objects(SET, &self.id) {
            let leader = self.world.leader().client.clone();
            let api = Api::<DynamicObject>::namespaced_with(leader, AREA, &object.resource);
            match api.delete(&object.name, &DeleteParams::default()).await {
                // Kubernetes deletes a token along with its ServiceAccount.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                deleted => drop(deleted.unwrap()),
            }
        }
    }

    pub fn records(&self) -> Api<ResourceExport> {
        Api::namespaced(self.client.clone(), &self.area)
    }

    pub fn imports(&self) -> Api<ResourceImport> {
        Api::namespaced(self.client.clone(), &self.area)
    }

    fn announces(&self) -> Api<MemberClusterAnnounce> {
        Api::namespaced(self.client.clone(), &self.area)
    }

    /// Announces itself, and lives until what it returns is dropped.
    pub async fn live(&self) -> JoinSet<()> {
        self.announce().await;
        self.beat(0)
    }

    pub async fn announce(&self) {
        let fields = MemberClusterAnnounceFields {
            cluster_id: Some(self.id.clone()),
            cluster_set_id: Some(SET.into()),
            leader_cluster_id: Some("leader".into()),
        };
        let announce = MemberClusterAnnounce::new(&name::announce(&self.id), fields);
        self.announces().create(&PostParams::default(), &announce).await.unwrap();
    }

    /// Says that it is there, again and again until what it returns is dropped; for the `first`th time.
    pub fn beat(&self, first: u32) -> JoinSet<()> {
        let (announces, name) = (self.announces(), name::announce(&self.id));
        let mut heart = JoinSet::new();
        heart.spawn(async move {
            for beat in first.. {
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                let Ok(mut announce) = announces.get(&name).await else { return };
                // By a clock of its own.
                let touched =
                    format!("2020-01-01T{:02}:{:02}:{:02}Z", beat / 1800, beat / 30 % 60, beat % 30 * 2);
                announce.annotations_mut().insert(TOUCHED.into(), touched);
                match announces.replace(&name, &PostParams::default(), &announce).await {
                    // The leader wrote it meanwhile: there is a next time.
                    Err(kube::Error::Api(status)) if status.is_conflict() => {}
                    beaten => drop(beaten.unwrap()),
                }
            }
        });
        heart
    }

    pub async fn leave(&self) {
        self.announces().delete(&name::announce(&self.id), &DeleteParams::default()).await.unwrap();
    }

    /// Its announce is gone.
    pub async fn is_gone(&self) -> Result<(), String> {
        match self.announces().get_opt(&name::announce(&self.id)).await.unwrap() {
            None => Ok(()),
            Some(announce) => Err(format!("{:?}", announce.metadata)),
        }
    }

    /// Exports the Service: first its ports, then its endpoints.
    pub async fn export(&self, service: &ServiceName, port: Port<'_>, addresses: &[&str], at: i32) {
        let ports = json!([{"name": port.0, "port": port.1, "protocol": "TCP", "targetPort": at}]);
        let ours = self.record(service, "Service", &json!({"service": {"serviceSpec": {"ports": ports}}}));
        self.records().create(&PostParams::default(), &ours).await.unwrap();
        let endpoints = self.record(service, "Endpoints", &endpoints(port.0, addresses, at));
        self.records().create(&PostParams::default(), &endpoints).await.unwrap();
    }

    /// Replaces the endpoints.
    pub async fn endpoints(&self, service: &ServiceName, port: &str, addresses: &[&str], at: i32) {
        let name = endpoints_export(&self.id, service);
        let had = self.records().get(&name).await.unwrap();
        let mut new = self.record(service, "Endpoints", &endpoints(port, addresses, at));
        new.metadata.resource_version = had.metadata.resource_version;
        self.records().replace(&name, &PostParams::default(), &new).await.unwrap();
    }

    /// Deletes both records: that is all it does.
    pub async fn unexport(&self, service: &ServiceName) {
        for name in [service_export(&self.id, service), endpoints_export(&self.id, service)] {
            self.records().delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }

    /// A record as Antrea writes it.
    pub fn record(&self, service: &ServiceName, kind: &str, payload: &Value) -> ResourceExport {
        let name = match kind {
            "Service" => service_export(&self.id, service),
            _ => endpoints_export(&self.id, service),
        };
        let mut spec =
            json!({"clusterID": self.id, "namespace": service.namespace, "name": service.name, "kind": kind});
        spec.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        let labels = json!({
            label::SOURCE_CLUSTER_ID: self.id,
            label::SOURCE_NAMESPACE: service.namespace,
            label::SOURCE_NAME: service.name,
            label::SOURCE_KIND: kind,
        });
        serde_json::from_value(json!({
            "apiVersion": "multicluster.crd.antrea.io/v1alpha1",
            "kind": "ResourceExport",
            "metadata": {"name": name, "labels": labels, "finalizers": [RECORD_FINALIZERS[0]]},
            "spec": spec,
        }))
        .unwrap()
    }
}

fn endpoints(port: &str, addresses: &[&str], at: i32) -> Value {
    let addresses: Vec<_> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"endpoints": {"subsets": [
        {"addresses": addresses, "ports": [{"name": port, "port": at, "protocol": "TCP"}]},
    ]}})
}
