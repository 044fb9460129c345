//! Who takes part.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::Picture;
use crate::{
    cluster::{Area, Cluster},
    finding::Finding,
    view::ClusterSetView,
};

/// A cluster that takes part, looked at or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Party<'a> {
    /// Its ID, or its context where it has none.
    pub(super) id: &'a str,
    /// What is known of it, if it was looked at.
    pub(super) cluster: Option<&'a Cluster>,
}

/// Who takes part, and where the records are.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) picture: &'a Picture,
    pub(super) importer: Party<'a>,
    /// Whoever has a ServiceExport of the Service, or takes part in it as the leader knows.
    pub(super) exporters: Vec<Party<'a>>,
    /// The Common Area of the importer's ClusterSet, and the cluster that leads it.
    pub(super) area: Option<(&'a Cluster, &'a Area)>,
    /// Name of the ClusterSet.
    pub(super) set: Option<String>,
}

impl<'a> Scene<'a> {
    pub(super) fn of(picture: &'a Picture, from: Option<&'a str>) -> Result<Self, String> {
        let importer = importer(picture, from)?;
        let belongs = importer.cluster.and_then(Cluster::set).map(ResourceExt::name_any);
        let all = || {
            let of = |cluster: &'a Cluster| cluster.areas.iter().flatten().map(move |area| (cluster, area));
            picture.clusters.iter().flat_map(of)
        };
        let has_importer = |area: &Area| area.members().any(|member| member == importer.id);
        let area = match &belongs {
            Some(set) => all().find(|(_, area)| area.set().as_ref() == Some(set)),
            None => all().find(|(_, area)| has_importer(area)).or_else(|| all().next()),
        };
        let set = belongs.or_else(|| area.and_then(|(_, area)| area.set()));
        let mut scene = Self { picture, importer, exporters: vec![], area, set };
        scene.exporters = scene.exporters();
        Ok(scene)
    }

    fn exporters(&self) -> Vec<Party<'a>> {
        let (picture, name) = (self.picture, &self.picture.service.name);
        let is_of_another = |cluster: &Cluster| {
            let set = cluster.set().map(ResourceExt::name_any);
            set.is_some() && self.set.is_some() && set != self.set
        };
        let declared = picture.clusters.iter();
        let declared = declared.filter(|cluster| cluster.export(name).is_some() && !is_of_another(cluster));
        let mut exporters: Vec<Party<'a>> =
            declared.map(|cluster| Party { id: cluster.title(), cluster: Some(cluster) }).collect();
        let of_area = self.area.iter().flat_map(|(_, area)| {
            let merged = area.merged.iter().flatten().flat_map(|merged| merged.exporters());
            let merged = merged.map(|exporter| exporter.cluster_id.as_str());
            merged.chain(area.records.iter().flatten().filter_map(|record| record.exporter()))
        });
        for id in of_area.collect::<BTreeSet<_>>() {
            if exporters.iter().all(|party| party.id != id) {
                let cluster = picture.clusters.iter().find(|cluster| cluster.id() == Some(id));
                exporters.push(Party { id, cluster });
            }
        }
        exporters
    }

    /// The Service in words.
    pub(super) fn service(&self) -> String {
        self.picture.service.to_string()
    }

    /// Name of the Service.
    pub(super) fn name(&self) -> &'a str {
        &self.picture.service.name
    }

    /// A finding about a cluster.
    pub(super) fn broken(&self, code: u16, party: &Party<'_>, what: impl Into<String>) -> Finding {
        let mut finding = Finding::broken(code, what)
            .with("namespace", &self.picture.service.namespace)
            .with("name", self.name())
            .with("id", party.id);
        if let Some(cluster) = party.cluster {
            finding = finding.with("context", &cluster.context);
        }
        if let Some((leader, area)) = self.area {
            finding = finding.with("leader", &leader.context);
            let set = area.sets.as_ref().ok().and_then(|sets| sets.first());
            if let Some(id) = set.and_then(ClusterSetView::cluster_id) {
                finding = finding.with("leaderid", id);
            }
        }
        match &self.set {
            Some(set) => finding.with("set", set),
            None => finding,
        }
    }
}

fn importer<'a>(picture: &'a Picture, from: Option<&'a str>) -> Result<Party<'a>, String> {
    let Some(from) = from else {
        let first = picture.clusters.first().ok_or("no cluster was looked at")?;
        return Ok(Party { id: first.title(), cluster: Some(first) });
    };
    let is_it = |cluster: &&Cluster| cluster.id() == Some(from) || cluster.context == from;
    if let Some(cluster) = picture.clusters.iter().find(is_it) {
        return Ok(Party { id: cluster.title(), cluster: Some(cluster) });
    }
    let members = picture.clusters.iter().flat_map(|cluster| cluster.areas.iter().flatten());
    let members: BTreeSet<_> = members.flat_map(Area::members).collect();
    if members.contains(from) {
        return Ok(Party { id: from, cluster: None });
    }
    let known = picture.clusters.iter().map(|cluster| cluster.title().to_owned()).chain(members);
    let known: BTreeSet<_> = known.collect();
    Err(format!(
        "no cluster that was looked at is called {from:?}; known: {}",
        known.into_iter().collect::<Vec<_>>().join(", ")
    ))
}
