//! `freeport bind templates`: what a provider offers.

use std::collections::BTreeMap;

use api::{
    bind::{
        label,
        offer::{APIServiceExportTemplate, Collection},
        resource::Resource,
    },
    view::Tolerant,
};
use kube::{Api, ResourceExt};
use serde::Serialize;

use super::{is_provider, templates};
use crate::{Error, KubeContext, cluster::Cluster};

/// A template of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Its name.
    pub template: String,
    /// Its APIs, each as `PLURAL.GROUP`.
    pub resources: Vec<String>,
    /// How objects of its consumers are kept apart, as its annotation says; none: as the provider does it.
    pub isolation: Option<String>,
    /// The collections that it is in.
    pub collections: Vec<String>,
}

/// What a provider offers.
///
/// # Errors
/// Those of [`Error`].
pub async fn offers(context: &KubeContext) -> Result<Vec<Offer>, Error> {
    let cluster = Cluster::connect(context).await?;
    is_provider(&cluster).await?;
    let templates = templates(&cluster).await?;
    let collections: Api<Tolerant<Collection>> = Api::all(cluster.client.clone());
    let collections = cluster.all(&collections, "").await?;
    let mut within = BTreeMap::<String, Vec<String>>::new();
    for collection in collections.into_iter().filter_map(|found| found.object.ok()) {
        for template in &collection.spec.templates {
            within.entry(template.name.clone()).or_default().push(collection.name_any());
        }
    }
    let offer = |template: &APIServiceExportTemplate| Offer {
        template: template.name_any(),
        resources: template.spec.resources.iter().map(Resource::name).collect(),
        isolation: template.annotations().get(label::ISOLATION).cloned(),
        collections: within.get(&template.name_any()).cloned().unwrap_or_default(),
    };
    Ok(templates.iter().map(offer).collect())
}

/// A table for people.
pub fn offer_text(offers: &[Offer]) -> String {
    if offers.is_empty() {
        return "no APIServiceExportTemplates: freeport bind offer makes one\n".into();
    }
    let or_none = |names: &[String]| if names.is_empty() { "-".to_owned() } else { names.join(",") };
    let head = ["TEMPLATE", "APIS", "ISOLATION", "COLLECTIONS"].map(str::to_owned);
    let row = |offer: &Offer| {
        let isolation = offer.isolation.clone().unwrap_or_else(|| "-".to_owned());
        [offer.template.clone(), or_none(&offer.resources), isolation, or_none(&offer.collections)]
    };
    let rows: Vec<_> = std::iter::once(head).chain(offers.iter().map(row)).collect();
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (first, second, third) = (wide(0), wide(1), wide(2));
    let line = |[template, apis, isolation, collections]: &[String; 4]| {
        format!("{template:first$}  {apis:second$}  {isolation:third$}  {collections}\n")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_a_table() {
        let offer = |template: &str, collections: &[&str]| Offer {
            template: template.into(),
            resources: vec!["mangodbs.example.com".into()],
            isolation: (template == "db").then(|| "none".to_owned()),
            collections: collections.iter().map(|name| (*name).to_owned()).collect(),
        };
        let text = offer_text(&[offer("db", &["all"]), offer("database", &[])]);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[0], ["TEMPLATE", "APIS", "ISOLATION", "COLLECTIONS"]);
        assert_eq!(lines[1], ["db", "mangodbs.example.com", "none", "all"]);
        assert_eq!(lines[2], ["database", "mangodbs.example.com", "-", "-"]);
    }
}
