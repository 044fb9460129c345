//! A replica that stands by: it has a session with the leader, so that all is known when it becomes the active one. It decides nothing,
//! and what it finds it says nowhere.

use super::Control;
use crate::membership::action::Action;

impl Control {
    /// Makes sure that there is a session if the active replica has one.
    pub(super) async fn stand_by(&mut self) {
        match self.state.with(|state| state.action()) {
            Action::Connect { target, note } => drop(self.connect(&target, note).await),
            // The active replica finds out. Until then everything goes on.
            Action::FindOut(_) => {}
            Action::Nothing | Action::Wait { .. } | Action::Leave { .. } => self.end_session().await,
        }
    }
}
