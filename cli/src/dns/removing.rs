//! Names for the whole set, taken back. Reads ConfigMap and Deployment; changes the Corefile, restarts the Deployment, and deletes the
//! ClusterRole and its binding when no CoreDNS uses them any more.

use super::{
    DnsOptions, ZONE, change,
    corefile::{self, Course},
    restart,
    server::{KEY, Server},
    undecided,
};
use crate::{
    Error,
    cluster::Cluster,
    eraser::{Eraser, Say},
    objects::dns,
};

pub(super) async fn remove(cluster: &Cluster, options: &DnsOptions, say: Say<'_>) -> Result<(), Error> {
    let server = Server::read(cluster, &options.config_map).await?;
    let course =
        corefile::remove(&server.corefile, ZONE).map_err(|error| undecided(cluster, &server.name, &error))?;
    let corefile = match course {
        Course::Write(corefile) => Some(corefile),
        Course::Leave => None,
        Course::Foreign(claim) => {
            let place = format!("ConfigMap {}, {KEY}, {claim}", server.name);
            say(&format!("{}: left {place} as it is: freeport did not write it", cluster.name));
            return Ok(());
        }
    };
    let noted = server.deployment.as_ref().is_some_and(|found| restart::last_reason(found).is_some());
    let restart = noted || (corefile.is_some() && server.deployment.is_some());
    let account = server.account();
    let [role, binding] = dns::objects(&account.namespace, &account.name);
    let granted = cluster.read(&role).await?.or(cluster.read(&binding).await?);
    if corefile.is_none() && !restart && granted.is_none() {
        say(&format!("{}: there is nothing of `freeport dns` to take back", cluster.name));
        return Ok(());
    }
    if options.apply {
        change_and_restart(cluster, options, &server, corefile.as_deref(), restart, &mut *say).await?;
    } else {
        show(cluster, &server, corefile.as_deref(), restart, &mut *say);
    }
    if let Some((name, claim)) = server.claim_elsewhere(cluster, ZONE).await? {
        say(&format!(
            "{}: left ClusterRole {}: ConfigMap {name}, {claim}, has {ZONE}",
            cluster.name,
            dns::name(&account.namespace, &account.name)
        ));
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

fn show(cluster: &Cluster, server: &Server, corefile: Option<&str>, restart: bool, say: Say<'_>) {
    if let Some(corefile) = corefile {
        say(&change::diff(server, corefile));
    }
    if restart {
        say(&format!("{}: would restart Deployment {}", cluster.name, server.name));
    }
}

async fn change_and_restart(
    cluster: &Cluster,
    options: &DnsOptions,
    server: &Server,
    corefile: Option<&str>,
    restart: bool,
    say: Say<'_>,
) -> Result<(), Error> {
    if let Some(corefile) = corefile {
        change::write(cluster, server, corefile).await?;
        say(&format!("{}: changed ConfigMap {}: {KEY} has {ZONE} no more", cluster.name, server.name));
    }
    if restart {
        restart::restart(cluster, &server.name, None).await?;
        say(&format!("{}: restarted Deployment {}", cluster.name, server.name));
        let next = format!("To go on when it is: {}", options.command("--remove --apply"));
        restart::rolled_out(cluster, &server.name, options.timeout, &next, &mut *say).await?;
        say(&format!("{}: CoreDNS is rolled out", cluster.name));
    } else if corefile.is_some() {
        say(&format!("next: restart CoreDNS in {}, which reads its {KEY} when it starts", cluster.name));
    }
    Ok(())
}
