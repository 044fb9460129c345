//! Features without a session: while none can run, though the note says who we are.

use super::Control;
use crate::membership::running::Alone;

impl Control {
    /// Lets the features run alone if nothing else runs for a noted membership.
    pub(super) async fn run_alone(&mut self) {
        let is_free = self.running.is_none() && self.leaving.is_none();
        let wanted = self.state.with(|state| state.alone()).filter(|_| is_free);
        if self.alone.as_ref().map(|alone| &alone.membership) == wanted.as_ref() {
            return;
        }
        self.end_alone().await;
        self.alone = wanted.map(|membership| Alone::start(&self.env, &self.features, &self.home, membership));
    }

    /// Ends it, if it runs.
    pub(super) async fn end_alone(&mut self) {
        if let Some(alone) = self.alone.take() {
            alone.end().await;
        }
    }
}
