//! Takes names back. Reads ConfigMap and Deployment; changes the Corefile, restarts the Deployment, and deletes the ClusterRole and
//! its binding unless somebody else's block needs them.

use picture::dns::corefile;

use super::{DnsOptions, change, change::Change, server::Server};
use crate::{
    Error,
    cluster::Cluster,
    eraser::{Eraser, Say},
    objects::dns,
};

pub(super) async fn remove(cluster: &Cluster, options: &DnsOptions, say: Say<'_>) -> Result<(), Error> {
    let server = Server::read(cluster, &options.config_map).await?;
    let corefile = corefile::remove(&server.corefile).map_err(|error| server.refuse(cluster, &error))?;
    let is_there = corefile != server.corefile;
    let claim = server.claim(cluster).await?;
    if let (Some(place), false) = (&claim, is_there) {
        say(&format!("{}: left {place} as it is: freeport did not write it", cluster.name));
        return Ok(());
    }
    let noted = server.deployment.as_ref().and_then(change::restarted_for).is_some();
    let restart = noted || (is_there && server.deployment.is_some());
    let account = server.account();
    let [role, binding] = dns::objects(&account.namespace, &account.name);
    let granted = cluster.read(&role).await?.or(cluster.read(&binding).await?);
    if !is_there && !restart && granted.is_none() {
        say(&format!("{}: there is nothing of `freeport dns` to remove", cluster.name));
        return Ok(());
    }
    let mut change = Change { cluster, server: &server, options, say: &mut *say };
    if is_there {
        change.corefile(&corefile).await?;
    }
    if restart {
        change.restart(None).await?;
        if options.apply {
            change.rolled_out("To go on when it is").await?;
            change.say("CoreDNS is rolled out");
        }
    }
    if let Some(place) = claim {
        change.say(&format!("left {role}: {place} needs it"));
    } else {
        let mut here = Eraser::new(cluster, !options.apply, &mut *say);
        here.delete_ours(&binding).await?;
        here.delete_ours(&role).await?;
    }
    if !options.apply {
        say(&format!("next: {}", options.command("--remove --apply")));
    }
    Ok(())
}
