//! Reads CoreDNS by its usual name, in two rounds: its objects, then what they name.

use futures::future::join_all;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, PodSpec},
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule},
};
use kube::Api;
use picture::{
    dns::{Dns, KEY, NAME, NAMESPACE, account, mounted, rights::role_for},
    gap::{Gap, Seen},
};

use super::{one, seen};
use crate::{
    cluster::Cluster,
    part::{get, list},
};

/// What is known of CoreDNS. Where there is none by that name nothing else is asked for.
pub(crate) async fn dns(cluster: &Cluster) -> Dns {
    let (config, deployment) = tokio::join!(
        Box::pin(one::<ConfigMap>(cluster, NAMESPACE, NAME)),
        Box::pin(one::<Deployment>(cluster, NAMESPACE, NAME)),
    );
    let corefile = config.map(|config| config.and_then(|config| config.data?.remove(KEY)));
    if !matches!(corefile, Ok(Some(_))) {
        return Dns { corefile, ..Dns::unknown(&Gap::NotLooked) };
    }
    let (mounted, rules) = match &deployment {
        Ok(deployment) => {
            let pod = deployment.as_ref().and_then(|deployment| deployment.spec.template.spec.as_ref());
            tokio::join!(Box::pin(files(cluster, pod)), Box::pin(rules(cluster, account(pod))))
        }
        Err(gap) => (Err(gap.clone()), Err(gap.clone())),
    };
    Dns { corefile, mounted, deployment, rules }
}

/// Files of other ConfigMaps that its Pods mount.
async fn files(cluster: &Cluster, pod: Option<&PodSpec>) -> Seen<Vec<String>> {
    let names = pod.into_iter().flat_map(|pod| mounted(pod, NAME));
    let maps = join_all(names.map(|name| Box::pin(one::<ConfigMap>(cluster, NAMESPACE, name)))).await;
    let mut files = Vec::new();
    for map in maps {
        files.extend(map?.and_then(|map| map.data).unwrap_or_default().into_values());
    }
    Ok(files)
}

/// Rules of the ClusterRoles that are bound to a ServiceAccount.
async fn rules(cluster: &Cluster, account: &str) -> Seen<Vec<PolicyRule>> {
    let bindings = Api::<ClusterRoleBinding>::all(cluster.client.clone());
    let named = |binding: ClusterRoleBinding| role_for(&binding, NAMESPACE, account).map(str::to_owned);
    let names = seen(list(cluster, &bindings, "clusterrolebindings".into(), "", named).await)?;
    let roles = Api::<ClusterRole>::all(cluster.client.clone());
    let read = async |name: String| seen(get(cluster, &roles, format!("ClusterRole {name}"), &name).await);
    let mut rules = Vec::new();
    for role in join_all(names.into_iter().flatten().map(|name| Box::pin(read(name)))).await {
        rules.extend(role?.and_then(|role| role.rules).unwrap_or_default());
    }
    Ok(rules)
}
