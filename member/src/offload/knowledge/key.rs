//! Our private key: what opens Pods for us.

use api::offload::seal::PrivateKey;
use kit::index::Readers;
use tokio::sync::watch;

use super::Knowledge;
use crate::offload::index::PEER;

impl Knowledge {
    /// Our private key, as soon as it is known.
    pub(crate) fn key(&self) -> Option<PrivateKey> {
        self.key.borrow().clone()
    }

    /// Tells of each change of [`key`](Self::key).
    pub(crate) fn keys(&self) -> watch::Receiver<Option<PrivateKey>> {
        self.key.subscribe()
    }

    /// Why there is no private key, if somebody has to mend that.
    pub(crate) fn key_refused(&self) -> Option<String> {
        self.key_refused.with(|refused| refused.clone())
    }

    /// There is no private key, for this reason.
    pub(crate) fn refuse_key(&self, why: &str) {
        let before = self.key_refused.with(|refused| refused.replace(why.to_owned()));
        if before.as_deref() != Some(why) {
            self.clusters.enqueue_all(PEER);
        }
    }

    /// Our private key is this one now.
    pub(crate) fn use_key(&self, key: PrivateKey) {
        self.key_refused.with(Option::take);
        self.key.send_replace(Some(key));
        self.clusters.enqueue_all(PEER);
        self.shadows.enqueue_all(Readers::ALL);
    }
}
