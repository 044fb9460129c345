//! Whether this cluster was restored from a backup. A watch finds that out where it has heard of a newer version than the API server has now.
//! Where no watch has, objects that the cluster has lost would stay known: so the API server is asked for its version now and then.
//!
//! A list tells the newest version of the whole cluster, which only a restore makes an older one. It needs no Lease, which nobody may hold here.

use std::time::Duration;

use api::view::Named;
use k8s_openapi::api::core::v1::Namespace;
use kit::boot::Env;
use kube::{Api, api::ListParams};

/// How often it is asked. By then a restored cluster must not have come to the version it had.
const EVERY: Duration = Duration::from_secs(10);

/// Returns when this cluster was restored.
pub(crate) async fn restored(env: &Env) {
    let namespaces = Api::<Named<Namespace>>::all(env.client.clone());
    // Any of them will do: with a selector the API server may have to read them all.
    let one = ListParams::default().limit(1);
    let mut heard = 0;
    loop {
        // Who does not answer is asked again.
        if let Ok(list) = namespaces.list(&one).await
            && !holds(&mut heard, list.metadata.resource_version.as_deref())
        {
            return;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Whether an API server that is at this version can be the one that was `heard` of before.
fn holds(heard: &mut u64, version: Option<&str>) -> bool {
    let Some(now) = version.and_then(|version| version.parse().ok()) else { return true };
    now >= std::mem::replace(heard, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_version_than_before_is_that_of_a_backup() {
        let mut heard = 0;
        let all = ["5", "5", "90", "", "91", "12", "13"];
        assert_eq!(
            all.map(|version| holds(&mut heard, Some(version))),
            [true, true, true, true, true, false, true]
        );
        assert!(holds(&mut heard, None));
    }
}
