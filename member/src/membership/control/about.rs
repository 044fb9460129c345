//! Writes the ClusterProperties of the membership.

use super::Control;

/// How many there are.
const PROPERTIES: usize = 2;

impl Control {
    /// Has this cluster say who it is and where it belongs; whether that is done.
    pub(super) async fn say_properties(&self) -> bool {
        for _ in 0..PROPERTIES {
            let (due, lists) = self.state.with(|state| (state.due(), state.properties.lists()));
            let Some((have, want)) = due else { break };
            match self.writer.put(have.as_ref(), &want).await {
                Ok(Some(property)) => self.state.with(|state| state.properties.answered(property, lists)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot write a ClusterProperty, trying again");
                    return false;
                }
            }
        }
        true
    }
}
