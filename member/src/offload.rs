//! Offloading: Namespaces of this cluster get twins in others, and their Pods run where their owner says.
//!
//! | module | holds |
//! |---|---|
//! | [`certificate`] | the certificate of the webhook, and whether it answers |

mod certificate;

use api::offload::namespace::PodOffloadingStrategy;
use kit::boot::Env;
use tokio::sync::watch;

pub(crate) use self::certificate::Lifetimes;
use self::certificate::{Answer, placement};

/// Keeps the certificate of the webhook until the daemon shall stop, and logs whether it answers.
pub(crate) async fn run(env: Env, lifetimes: Lifetimes) {
    let (answers, mut answered) = watch::channel(Answer::default());
    let log = async {
        while answered.changed().await.is_ok() {
            let verdict = placement(PodOffloadingStrategy::Remote, &answered.borrow_and_update());
            tracing::info!(reason = verdict.reason, message = verdict.message, "placement of Pods");
        }
    };
    let stop = env.stop.clone();
    tokio::join!(certificate::run(env, lifetimes, answers, stop), log);
}
