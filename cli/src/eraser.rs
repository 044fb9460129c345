//! Deletes and changes objects in one cluster, and says what it did.

mod finalizer;

use std::time::Duration;

use api::{
    label,
    view::{Meta, Written, is_written_by},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    core::discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::{
    Error,
    cluster::{Cluster, known},
    dynamic::Dynamic,
    error::{Failure, classify},
    install::MANAGER,
    objects::Object,
};

pub(crate) use self::finalizer::release;

/// Gets one line for each thing done.
pub(crate) type Say<'a> = &'a mut (dyn FnMut(&str) + Send);

/// Pause between two reads of something that is waited for.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// Deletes and changes objects in one cluster.
pub(crate) struct Eraser<'a> {
    pub(crate) cluster: &'a Cluster,
    /// Say what would be done instead of doing it.
    pub(crate) dry_run: bool,
    say: Say<'a>,
}

/// The object of kind `K` of this name, without a body.
pub(crate) fn called<K: Resource<DynamicType = ()>>(namespace: &str, name: &str) -> Object {
    Object {
        resource: ApiResource::erase::<K>(&()),
        name: name.into(),
        namespace: Some(namespace.into()),
        body: Value::Null,
    }
}

impl<'a> Eraser<'a> {
    pub(crate) fn new(cluster: &'a Cluster, dry_run: bool, say: Say<'a>) -> Self {
        Self { cluster, dry_run, say }
    }

    /// Reports one thing about this cluster.
    pub(crate) fn say(&mut self, line: &str) {
        (self.say)(&format!("{}: {line}", self.cluster.name));
    }

    /// Reports something done, or in a dry run that it would be.
    fn did(&mut self, did: &str, would: &str, what: &str) {
        let dry_run = self.dry_run;
        self.say(&if dry_run { format!("would {would} {what}") } else { format!("{did} {what}") });
    }

    /// Says what to do next.
    pub(crate) fn next(&mut self, line: &str) {
        (self.say)(&format!("next: {line}"));
    }

    /// The object as it is; none if there is no such object or kind.
    pub(crate) async fn read(&self, object: &Object) -> Result<Option<Object>, Error> {
        self.cluster.read(object).await
    }

    /// All objects of a kind, in one Namespace or in all; none without their CRD.
    pub(crate) async fn list<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Object>, Error> {
        let resource = ApiResource::erase::<K>(&());
        let api = self.cluster.api(&resource, namespace);
        let found = self.cluster.pages(&resource.plural, &api, labels).await?;
        let object = |item: Dynamic| Object {
            resource: resource.clone(),
            name: item.name_any(),
            namespace: item.namespace(),
            body: json!(item),
        };
        Ok(found.into_iter().map(object).collect())
    }

    /// Objects of a kind that the member wrote itself, in all Namespaces; none without their CRD. What somebody copied others wrote. Of each
    /// object there is the metadata, with who wrote it.
    pub(crate) async fn list_written<K: Resource<DynamicType = ()>>(
        &self,
        labels: &str,
    ) -> Result<Vec<Object>, Error> {
        let resource = ApiResource::erase::<K>(&());
        let client = self.cluster.client.clone();
        let api = Api::<Meta<Dynamic, Written>>::all_with(client, &resource);
        let found = self.cluster.pages(&resource.plural, &api, labels).await?;
        let written = found.into_iter().filter(|item| is_written_by(&item.metadata, label::MEMBER));
        let object = |item: Meta<Dynamic, Written>| Object {
            resource: resource.clone(),
            name: item.name_any(),
            namespace: item.namespace(),
            body: json!({"metadata": item.metadata}),
        };
        Ok(written.map(object).collect())
    }

    /// Deletes an object and says so, unless there is none or somebody has deleted it already, and it waits for its finalizers.
    pub(crate) async fn delete(&mut self, object: &Object) -> Result<(), Error> {
        let Some(read) = self.as_read(object).await? else { return Ok(()) };
        if read.metadata().deletion_timestamp.is_some() {
            self.say(&format!("{object} is being deleted already"));
        } else if self.erase(&read).await? {
            self.did("deleted", "delete", &object.to_string());
        }
        Ok(())
    }

    /// Deletes an object as it was read, and says so. False where somebody has changed it since: then it is to be read again.
    pub(crate) async fn delete_unchanged(&mut self, read: &Object) -> Result<bool, Error> {
        let version = read.metadata().resource_version;
        let gone = self.erase_at(read, version).await?;
        if gone == Some(true) {
            self.did("deleted", "delete", &read.to_string());
        }
        Ok(gone.is_some())
    }

    /// With its body; none if there is no such object.
    async fn as_read(&self, object: &Object) -> Result<Option<Object>, Error> {
        match object.body {
            Value::Null => self.read(object).await,
            _ => Ok(Some(object.clone())),
        }
    }

    /// Deletes an object that Freeport installed and says so. Leaves one that somebody else made, and says that.
    pub(crate) async fn delete_ours(&mut self, object: &Object) -> Result<(), Error> {
        match self.read(object).await? {
            Some(found) if found.is_ours() => self.delete(&found).await,
            Some(_) => {
                self.say(&left_alone(object));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Deletes objects of one kind and says how many; a dry run names each.
    pub(crate) async fn delete_all(&mut self, objects: &[Object]) -> Result<(), Error> {
        let mut deleted = 0;
        for object in objects {
            if self.dry_run {
                self.delete(object).await?;
            } else if self.erase(object).await? {
                deleted += 1;
            }
        }
        match objects.first().map(|object| &object.resource.kind) {
            Some(kind) if deleted > 0 => {
                let plural = if deleted == 1 { "" } else { "s" };
                self.say(&format!("deleted {deleted} {kind}{plural}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Deletes the object that was read, never a newer one of the same name. False if there was none.
    async fn erase(&self, object: &Object) -> Result<bool, Error> {
        let Some(read) = self.as_read(object).await? else { return Ok(false) };
        Ok(self.erase_at(&read, None).await? == Some(true))
    }

    /// The same of an object at that version, if one is given; nothing where it is at another one.
    async fn erase_at(&self, read: &Object, resource_version: Option<String>) -> Result<Option<bool>, Error> {
        if self.dry_run {
            return Ok(Some(true));
        }
        let is_bound = resource_version.is_some();
        let preconditions = Preconditions { uid: read.metadata().uid, resource_version };
        let only = DeleteParams::default().preconditions(preconditions);
        let api = self.api(read);
        let delete = async {
            match known(api.delete(&read.name, &only)).await {
                Err(error) if is_bound && classify(&error) == Failure::Conflict => Ok(None),
                other => other.map(|deleted| Some(deleted.is_some())),
            }
        };
        self.cluster.request(format!("delete {read}"), delete).await
    }

    /// Merges `patch` into an object and says what that `means`, unless the object is gone.
    pub(crate) async fn change(&mut self, object: &Object, patch: &Value, means: &str) -> Result<(), Error> {
        let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        let there = self.dry_run || {
            let (api, patch) = (self.api(object), Patch::Merge(patch));
            let change = known(api.patch(&object.name, &params, &patch));
            self.cluster.request(format!("change {object}"), change).await?.is_some()
        };
        if there {
            self.did("changed", "change", &format!("{object}: {means}"));
        }
        Ok(())
    }

    /// Creates an object and says so, unless somebody else was first.
    pub(crate) async fn create(&mut self, object: &Object) -> Result<(), Error> {
        if !self.dry_run {
            let doing = format!("create {object}");
            let body: Dynamic = self
                .cluster
                .request(&doing, async {
                    serde_json::from_value(object.body.clone()).map_err(kube::Error::SerdeError)
                })
                .await?;
            let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
            let api = self.api(object);
            let create = async {
                match api.create(&params, &body).await {
                    Err(error) if classify(&error) == Failure::Conflict => Ok(false),
                    other => other.map(|_| true),
                }
            };
            if !self.cluster.request(&doing, create).await? {
                return Ok(());
            }
        }
        self.did("created", "create", &object.to_string());
        Ok(())
    }

    fn api(&self, object: &Object) -> Api<Dynamic> {
        self.cluster.api(&object.resource, object.namespace.as_deref())
    }
}

fn left_alone(object: &Object) -> String {
    format!(
        "left {object} as it is: without the label {}={} it is not Freeport's; delete it if nobody else needs it",
        label::MANAGED_BY,
        label::FREEPORT
    )
}
