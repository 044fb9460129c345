//! Which APIServiceNamespaces go with a binding: those in which no other binding of the contract has objects. Where copies are to stay
//! those that have some are marked ([`left`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::bind::{binding::APIServiceBinding, export::APIServiceNamespace};
use kit::{index::Shared, write::Error};
use kube::{Resource, ResourceExt};

use super::Bindings;
use crate::bind::{contract::Contract, holder, left, local::Crd, policy::leaves_copies};

/// How long a binding that goes waits until it is known which Namespaces others need: a CRD that is made anew is established by then, and one that
/// never is keeps nobody from going.
const KNOWN_IN: Duration = Duration::from_secs(30);

/// Since when that is not known, by the name of the binding that goes.
#[derive(Clone, Default)]
pub(in crate::bind::binding) struct Unclear(Shared<BTreeMap<String, Instant>>);

impl Unclear {
    /// Whether the binding waits at `now` that it gets known.
    fn waits(&self, name: &str, now: Instant) -> bool {
        let since = self.0.with(|since| *since.entry(name.to_owned()).or_insert(now));
        now.saturating_duration_since(since) < KNOWN_IN
    }

    /// The binding is gone, or it is known.
    pub(super) fn forget(&self, name: &str) {
        self.0.with(|since| since.remove(name));
    }
}

impl Bindings {
    /// Whether those that go with the binding are taken back, or nobody waits for that any longer.
    pub(super) async fn are_namespaces_back(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
    ) -> Result<bool, Error> {
        let name = binding.name_any();
        if self.delete_namespaces(&name, contract).await? {
            self.unclear.forget(&name);
            return Ok(true);
        }
        if self.unclear.waits(&name, Instant::now()) {
            return Ok(false);
        }
        let message = "the CustomResourceDefinition of another binding of this contract is not established, so it is not known which Namespaces it needs: \
                       APIServiceNamespaces stay at the provider until that binding ends, or their Namespaces here do";
        tracing::warn!(binding = name, "{message}");
        self.env.events.warn(binding.object_ref(&()), "Bind", "NamespacesStay", message);
        Ok(true)
    }

    /// Takes back those that the binding `ending` is the last to need. Another one may have left copies there whose objects are gone. Whether
    /// it was known which these are.
    async fn delete_namespaces(&self, ending: &str, contract: &Contract) -> Result<bool, Error> {
        let others = self.others(ending, contract);
        let leaving = left::leaving(&self.local, &others);
        let all = left::namespaced(&self.local, &others);
        let (Some(apis), Some(left)) = (all, left::namespaced(&self.local, &leaving)) else {
            return Ok(false);
        };
        let mut done = Ok(());
        for namespace in ours(contract) {
            if !left::is_used(&self.env.client, &namespace.name_any(), &apis).await? {
                done = done.and(left::take_back(contract, &self.local, &namespace, &left).await);
            }
        }
        done.map(|()| true)
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

    /// The other bindings that use the contract.
    pub(super) fn others(&self, ending: &str, contract: &Contract) -> BTreeSet<String> {
        let mut others = holder::users(contract, &self.local, &self.secret);
        others.remove(ending);
        others
    }
}

/// Those that were made for this cluster, and neither go nor are to stay.
fn ours(contract: &Contract) -> Vec<APIServiceNamespace> {
    let is_ours = |namespace: &&APIServiceNamespace| {
        let is_going = namespace.metadata.deletion_timestamp.is_some();
        !is_going
            && contract.is_for_us(namespace)
            && !Contract::is_providers(namespace)
            && !leaves_copies(*namespace)
    };
    contract.known.with(|known| known.namespaces.iter().filter(is_ours).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_ever_for_the_crd_of_another_binding() {
        let (unclear, start) = (Unclear::default(), Instant::now());
        assert!(unclear.waits("mango", start));
        assert!(unclear.waits("mango", start + KNOWN_IN / 2));
        assert!(!unclear.waits("mango", start + KNOWN_IN));
        assert!(unclear.waits("cactus", start + KNOWN_IN), "each for itself");
        unclear.forget("mango");
        assert!(unclear.waits("mango", start + KNOWN_IN), "another one of its name");
    }
}
