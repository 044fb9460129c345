//! Gives imports names. Reads ConfigMap, Deployment, the CRD of ServiceImports, and what CoreDNS may do; applies a ClusterRole and its
//! binding, changes the Corefile, restarts the Deployment, in this order: new Pods find all they need.

use api::{mcs::ServiceImport, view::Meta};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, CustomResourceExt};
use picture::dns::{
    KEY,
    corefile::{self, ZONE},
};

use super::{
    DnsOptions, Namespaced,
    change::{self, Change},
    server::{FIRST, Server, written},
};
use crate::{
    Daemons, Error,
    cluster::Cluster,
    eraser::Say,
    install::Installer,
    objects::{Object, dns},
    run::{Part, Run},
};

pub(super) async fn add(cluster: &Cluster, options: &DnsOptions, say: Say<'_>) -> Result<(), Error> {
    let server = Server::read(cluster, &options.config_map).await?;
    let is_there = corefile::has_ours(&server.corefile).map_err(|error| server.refuse(cluster, &error))?;
    if let Some(place) = server.claim(cluster).await? {
        if is_there {
            return Err(cluster.refuse(format!(
                "{place} has {ZONE}, and so has what `freeport dns` wrote into ConfigMap {}: remove one of them \
                 (`freeport dns --remove`)",
                server.name
            )));
        }
        say(&format!("{}: {place} has {ZONE} already, not by freeport: nothing to do", cluster.name));
        return Ok(());
    }
    is_new_enough(cluster, &server, say)?;
    let corefile = match corefile::add(&server.corefile) {
        Ok(corefile) => corefile,
        Err(error) => {
            if matches!(error, corefile::Error::Unusual(_)) {
                say(&by_hand(cluster, &server));
            }
            return Err(server.refuse(cluster, &error));
        }
    };
    let crd = uid_of_crd(cluster).await?;
    if crd.is_none() {
        let missing = format!(
            "there are no ServiceImports here yet (no CRD {}): run `freeport init` or `freeport join` first",
            ServiceImport::crd_name()
        );
        if options.apply {
            return Err(cluster.refuse(missing));
        }
        say(&format!("{}: {missing}; until then --apply is refused", cluster.name));
    }
    change(cluster, options, &server, &corefile, crd.as_deref().unwrap_or_default(), say).await
}

/// Refuses a CoreDNS that would not start with the block. Says so if that is not known.
fn is_new_enough(cluster: &Cluster, server: &Server, say: Say<'_>) -> Result<(), Error> {
    let (name, first) = (&server.name, written(FIRST));
    let unknown = match server.image() {
        Some((image, Some(version))) if version < FIRST => {
            return Err(cluster.refuse(format!(
                "CoreDNS is {} (Deployment {name}, image {image}) and would not start with the option `multicluster`, which is new in \
                 {first}: update CoreDNS first",
                written(version)
            )));
        }
        Some((_, Some(_))) => return Ok(()),
        Some((image, None)) => format!("the image of Deployment {name}, {image:?}, does not say its version"),
        None => format!(
            "there is no Deployment {name}: CoreDNS is taken to run as ServiceAccount {}, and is not restarted by this command",
            server.account()
        ),
    };
    say(&format!("{}: {unknown}; a CoreDNS older than {first} would not start", cluster.name));
    Ok(())
}

/// What to do where the Corefile is not one that this command changes.
fn by_hand(cluster: &Cluster, server: &Server) -> String {
    let (name, account) = (&server.name, server.account());
    let (block, role) = (corefile::block(":53"), dns::name(&account.namespace, &account.name));
    let kubectl = format!("kubectl --context {}", cluster.name);
    format!(
        "# Add this block to ConfigMap {name}, {KEY}, with the port (and the `bind`) of the server block that has `kubernetes`:\n\
         {block}\
         # Then let CoreDNS watch ServiceImports, and restart it:\n\
         {kubectl} create clusterrole {role} --verb list,watch --resource serviceimports.multicluster.x-k8s.io\n\
         {kubectl} create clusterrolebinding {role} --clusterrole {role} --serviceaccount {}:{}\n\
         {kubectl} -n {} rollout restart deployment {}",
        account.namespace, account.name, name.namespace, name.name
    )
}

async fn uid_of_crd(cluster: &Cluster) -> Result<Option<String>, Error> {
    let crds: Api<Meta<CustomResourceDefinition>> = Api::all(cluster.client.clone());
    let name = ServiceImport::crd_name();
    let found = cluster.request(format!("read CRD {name}"), crds.get_opt(name)).await?;
    Ok(found.and_then(|crd| crd.metadata.uid))
}

/// The objects by which CoreDNS may watch ServiceImports, as far as they are missing or differ.
async fn lacking(cluster: &Cluster, account: &Namespaced) -> Result<Vec<Object>, Error> {
    let mut lacking = Vec::new();
    for wanted in dns::objects(&account.namespace, &account.name) {
        let found = cluster.read(&wanted).await?.map(|found| found.body).unwrap_or_default();
        if ["rules", "roleRef", "subjects"].iter().any(|part| found.get(part) != wanted.body.get(part)) {
            lacking.push(wanted);
        }
    }
    Ok(lacking)
}

/// Applies, changes and restarts what has to be, or shows it.
async fn change(
    cluster: &Cluster,
    options: &DnsOptions,
    server: &Server,
    corefile: &str,
    crd: &str,
    say: Say<'_>,
) -> Result<(), Error> {
    let objects = lacking(cluster, &server.account()).await?;
    let differs = corefile != server.corefile;
    let is_due = |deployment| differs || change::restarted_for(deployment) != Some(crd);
    let restart = server.deployment.as_ref().is_some_and(is_due);
    let nothing = objects.is_empty() && !differs && !restart;

    let run = run(options);
    Installer::new(cluster, &run, &mut *say).install(Part::Member, &objects).await?;
    let mut change = Change { cluster, server, options, say };
    if differs {
        change.corefile(corefile).await?;
    }
    if restart {
        change.restart(Some(crd)).await?;
    }
    if nothing {
        change.say(&format!("CoreDNS has all it needs for {ZONE}: nothing to do"));
    } else if !options.apply {
        (change.say)(&format!("next: {}", options.command("--apply")));
    }
    // Also after a run that changed all and did not see the end of it.
    if options.apply && server.deployment.is_some() {
        change.rolled_out("To undo it").await?;
        if !nothing {
            change.say(&format!("CoreDNS is rolled out: imports have names in {ZONE}"));
        }
    }
    Ok(())
}

fn run(options: &DnsOptions) -> Run {
    Run {
        daemons: Daemons::Inside { image: None, replicas: None },
        only: vec![],
        wait: true,
        timeout: options.timeout,
        dry_run: !options.apply,
        aside: |_| {},
    }
}
