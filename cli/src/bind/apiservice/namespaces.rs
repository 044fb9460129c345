//! Namespaces that the provider wants here: the member may make those that are asked for, and no others.

use api::bind::export::APIServiceExportRequestSpec;

use super::Consumer;
use crate::{Error, Part, install::Installer, objects::bind};

impl Consumer<'_> {
    /// The member's right on the Namespaces of a request.
    pub(super) async fn let_make(
        &self,
        here: &mut Installer<'_>,
        wanted: Option<&APIServiceExportRequestSpec>,
    ) -> Result<(), Error> {
        let namespaces = wanted.iter().flat_map(|wanted| &wanted.namespaces);
        let names: Vec<_> = namespaces.map(|namespace| namespace.name.as_str()).collect();
        match names[..] {
            [] => Ok(()),
            _ => here.install(Part::Member, &bind::namespaces(self.name, &names)).await,
        }
    }
}
