//! What a ClusterSet says of itself, in the Namespace of the daemons of a member or in the Common Area.

use api::{
    cluster_set::{ClusterSet, ClusterSetStatus, READY},
    condition::AntreaCondition,
};

use crate::{
    cluster::Cluster,
    fixture::{SET, SYSTEM, World},
    waiting::eventually,
};

pub async fn status(cluster: &Cluster, namespace: &str) -> Result<ClusterSetStatus, String> {
    let set = cluster.api::<ClusterSet>(namespace).get_opt(SET).await.map_err(|error| error.to_string())?;
    set.ok_or("no ClusterSet")?.status.ok_or("no status".to_owned())
}

/// The condition `Ready` among these.
pub fn ready(conditions: &[AntreaCondition]) -> Option<&AntreaCondition> {
    conditions.iter().find(|condition| condition.type_.as_deref() == Some(READY))
}

/// The message of the ClusterSet's condition `Ready` if it has this status and reason, or what it says.
pub async fn says(cluster: &Cluster, namespace: &str, (is, reason): (&str, &str)) -> Result<String, String> {
    let status = status(cluster, namespace).await?;
    let ready = ready(&status.conditions).ok_or("no condition Ready")?;
    if (ready.status.as_deref(), ready.reason.as_deref()) == (Some(is), Some(reason)) {
        return Ok(ready.message.clone().unwrap_or_default());
    }
    Err(format!("{ready:?}"))
}

/// Reason and message of the condition `ImportsComplete` of a member's ClusterSet.
pub async fn imports_complete(cluster: &Cluster) -> Result<(String, String), String> {
    let conditions = status(cluster, SYSTEM).await?.conditions;
    let said = conditions.into_iter().find(|condition| condition.type_.as_deref() == Some("ImportsComplete"));
    let said = said.ok_or("ImportsComplete is not said")?;
    Ok((said.reason.unwrap_or_default(), said.message.unwrap_or_default()))
}

impl World {
    /// Waits until a member says this of its membership: status and reason of the condition `Ready`. The message.
    pub async fn member_says(&self, cluster: &str, said: (&str, &str)) -> String {
        eventually(&format!("{cluster} says {}/{}", said.0, said.1), || async {
            let says = says(self.cluster(cluster), SYSTEM, said).await;
            says.map_err(|other| {
                format!("{other}; its log:\n{}", self.log_tail(&format!("freeport-member-{cluster}")))
            })
        })
        .await
    }
}
