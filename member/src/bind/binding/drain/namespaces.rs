//! Which APIServiceNamespaces go with a binding: those in which no other binding of the contract has objects. Where copies are to stay
//! those that have some are marked ([`left`]).

use std::collections::BTreeSet;

use api::bind::export::APIServiceNamespace;
use kit::write::Error;
use kube::ResourceExt;

use super::Bindings;
use crate::bind::{contract::Contract, left, local::Crd, policy::leaves_copies};

impl Bindings {
    /// Takes back those that the binding `ending` is the last to need. Another one may have left copies there whose objects are gone.
    pub(super) async fn delete_namespaces(&self, ending: &str, contract: &Contract) -> Result<(), Error> {
        let others = self.others(ending, contract);
        let leaving = left::leaving(&self.local, &others);
        let all = left::namespaced(&self.local, &others);
        let (Some(apis), Some(left)) = (all, left::namespaced(&self.local, &leaving)) else { return Ok(()) };
        for namespace in ours(contract) {
            if !left::is_used(&self.env.client, &namespace.name_any(), &apis).await? {
                left::take_back(contract, &namespace, &left).await?;
            }
        }
        Ok(())
    }

    /// Marks those that have copies of these APIs, which are to stay.
    pub(super) async fn leave_namespaces(&self, crds: &[Crd], contract: &Contract) -> Result<(), Error> {
        let served = crds.iter().filter_map(Crd::served).filter(|api| api.is_namespaced);
        let apis: Vec<_> = served.map(|api| api.resource).collect();
        for namespace in ours(contract) {
            left::marked(contract, &namespace, &apis).await?;
        }
        Ok(())
    }

    /// The other bindings of the contract, whatever credential they use.
    fn others(&self, ending: &str, contract: &Contract) -> BTreeSet<String> {
        let exports = contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
        let mut others: BTreeSet<_> =
            self.local.bindings_of(&self.secret).into_iter().chain(self.local.bound(exports)).collect();
        others.remove(ending);
        others
    }
}

/// Those that were made for this cluster, and neither go nor are to stay.
fn ours(contract: &Contract) -> Vec<APIServiceNamespace> {
    let is_ours = |namespace: &&APIServiceNamespace| {
        let is_going = namespace.metadata.deletion_timestamp.is_some();
        !is_going && !Contract::is_providers(namespace) && !leaves_copies(*namespace)
    };
    contract.known.with(|known| known.namespaces.iter().filter(is_ours).cloned().collect())
}
