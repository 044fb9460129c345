//! The end of a binding whose contract is another cluster's: what it brought here goes, and nothing at the provider is touched. Copies
//! there are the other cluster's to keep.

use api::{
    bind::{binding::APIServiceBinding, condition::Verdict},
    view::Meta,
};
use kit::{queue::Outcome, write::Error};
use kube::{Api, ResourceExt};

use super::{AGAIN, Bindings, DELETING, ORPHANING, deleting, report};
use crate::bind::{
    binding::{
        Link,
        verdict::{not_yet, unconnected},
    },
    crd::{is_left_behind, is_of},
    local::FINALIZER,
};

impl Bindings {
    /// A pass of such a binding. What this cluster's API server refuses is reported on the binding.
    pub(in crate::bind::binding) async fn end_alone(
        &self,
        binding: &APIServiceBinding,
        link: &Link,
    ) -> Result<Outcome, Error> {
        let ended = self.drain_alone(binding).await;
        if let Err(error) = &ended
            && !matches!(error, Error::Stale)
        {
            let mut verdicts = unconnected(link, true);
            verdicts.push(Verdict::new("SchemaInSync", not_yet(DELETING, deleting(Some(error)))));
            report::on_binding(self, binding, None, verdicts).await?;
        }
        ended
    }

    async fn drain_alone(&self, binding: &APIServiceBinding) -> Result<Outcome, Error> {
        let bindings = Api::<Meta<APIServiceBinding>>::all(self.env.client.clone());
        let now = bindings.get_opt(&binding.name_any()).await?.filter(|now| now.uid() == binding.uid());
        let Some(now) = now.filter(|now| now.finalizers().iter().any(|held| held == FINALIZER)) else {
            return Ok(Outcome::Done);
        };
        if now.finalizers().iter().any(|held| held == ORPHANING) {
            return Ok(Outcome::Requeue(AGAIN));
        }
        let crds = self.crds(|crd| is_of(crd, binding));
        self.are_still_of(binding, &crds).await?;
        if self.drop_objects(&crds).await? > 0 {
            return Ok(Outcome::Requeue(AGAIN));
        }
        self.free(&self.crds(|crd| is_left_behind(crd, binding))).await?;
        if !crds.is_empty() {
            for crd in crds.iter().filter(|crd| !crd.metadata_is_going()) {
                self.writer.delete(crd, false).await?;
            }
            return Ok(Outcome::Requeue(AGAIN));
        }
        tracing::info!(
            binding = now.name_any(),
            "the binding goes; what it has at the provider is another cluster's"
        );
        self.writer.release(&now, &[FINALIZER]).await?;
        Ok(Outcome::Done)
    }
}
