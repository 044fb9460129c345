//! Namespaces that the provider wants here: the member may make those that are asked for, and no others.

use api::bind::{export::APIServiceExportRequestSpec, identity::is_of_system};

use super::Consumer;
use crate::{
    Error, Part,
    cluster::list,
    install::Installer,
    objects::{SYSTEM, bind},
};

impl Consumer<'_> {
    /// The member's right on the Namespaces of a request.
    pub(super) async fn let_make(
        &self,
        here: &mut Installer<'_>,
        wanted: Option<&APIServiceExportRequestSpec>,
    ) -> Result<(), Error> {
        let namespaces = wanted.iter().flat_map(|wanted| &wanted.namespaces);
        let names: Vec<_> = namespaces.map(|namespace| namespace.name.as_str()).collect();
        let (system, names): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| is_of_system(name, SYSTEM));
        if !system.is_empty() {
            here.say(&format!(
                "the provider wants Namespaces of the system, which are not made: {}",
                list(&system)
            ));
        }
        if names.is_empty() {
            return Ok(());
        }
        here.say(&format!("the provider wants Namespaces, which freeport-member makes: {}", list(&names)));
        here.install(Part::Member, &bind::namespaces(self.name, &names)).await
    }
}
