//! Names for the whole set. Reads ConfigMap, Deployment, the CRD of ServiceImports, and what CoreDNS may; applies a ClusterRole and its
//! binding, changes the Corefile, restarts the Deployment, in this order: the new Pods can use at once what they find.

use api::mcs::ServiceImport;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, CustomResourceExt};

use super::{
    DnsOptions, ZONE, change,
    corefile::{self, Course},
    restart, right,
    server::{KEY, Server},
    undecided, version,
};
use crate::{
    Daemons, Error,
    cluster::Cluster,
    eraser::Say,
    install::Installer,
    objects::Object,
    run::{Part, Run},
};

/// What there is to do.
struct Plan {
    /// To be applied.
    objects: Vec<Object>,
    /// To be written.
    corefile: Option<String>,
    /// The reason to restart the Deployment.
    restart: Option<String>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.corefile.is_none() && self.restart.is_none()
    }
}

pub(super) async fn add(cluster: &Cluster, options: &DnsOptions, say: Say<'_>) -> Result<(), Error> {
    let server = Server::read(cluster, &options.config_map).await?;
    let course =
        corefile::add(&server.corefile, ZONE).map_err(|error| undecided(cluster, &server.name, &error))?;
    if let Some(place) = claimed(cluster, &server, &course).await? {
        say(&format!("{}: {place} has {ZONE} already, not by freeport: nothing to do", cluster.name));
        return Ok(());
    }
    can_do_it(cluster, &server, say)?;
    let kind = uid_of_kind(cluster).await?;
    if kind.is_none() {
        let missing = format!(
            "there are no ServiceImports here yet (no CRD {}): run `freeport init` or `freeport join` first",
            ServiceImport::crd_name()
        );
        if options.apply {
            return Err(cluster.refuse(missing));
        }
        say(&format!("{}: {missing}; until then --apply is refused", cluster.name));
    }
    let plan = plan(cluster, &server, course, kind.as_deref().unwrap_or_default(), say).await?;
    if options.apply {
        apply(cluster, options, &server, &plan, say).await
    } else {
        show(cluster, options, &server, &plan, say).await
    }
}

/// Where somebody else has the zone.
async fn claimed(cluster: &Cluster, server: &Server, course: &Course) -> Result<Option<String>, Error> {
    if let Course::Foreign(claim) = course {
        return Ok(Some(format!("ConfigMap {}, {KEY}, {claim}", server.name)));
    }
    let Some((name, claim)) = server.claim_elsewhere(cluster, ZONE).await? else { return Ok(None) };
    let place = format!("ConfigMap {name}, {claim}, which CoreDNS' Pods mount,");
    if corefile::ours(&server.corefile).is_some() {
        return Err(cluster.refuse(format!(
            "{place} has {ZONE}, and so has what `freeport dns` wrote into ConfigMap {}: take one of them away (`freeport dns --remove`)",
            server.name
        )));
    }
    Ok(Some(place))
}

/// Whether this CoreDNS knows what it is to do. Says what is not known of it.
fn can_do_it(cluster: &Cluster, server: &Server, say: Say<'_>) -> Result<(), Error> {
    let (name, first) = (&server.name, version::FIRST);
    let mut say = |line: String| say(&format!("{}: {line}", cluster.name));
    if server.deployment.is_none() {
        say(format!(
            "there is no Deployment {name}: CoreDNS is taken to be ServiceAccount {}, has to be {first} or newer, and is not \
             restarted by this command",
            server.account()
        ));
        return Ok(());
    }
    match server.image() {
        Some((image, Some(version))) if version < first => Err(cluster.refuse(format!(
            "CoreDNS is {version} (Deployment {name}, image {image}) and would not start with the option `multicluster`, which {first} \
             brought: update CoreDNS first"
        ))),
        Some((_, Some(_))) => Ok(()),
        other => {
            let image = other.map_or("", |(image, _)| image);
            say(format!(
                "the image of Deployment {name}, {image:?}, does not say its version: a CoreDNS older than {first} would not start"
            ));
            Ok(())
        }
    }
}

async fn uid_of_kind(cluster: &Cluster) -> Result<Option<String>, Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let name = ServiceImport::crd_name();
    let found = cluster.request(format!("read CRD {name}"), crds.get_metadata_opt(name)).await?;
    Ok(found.and_then(|crd| crd.metadata.uid))
}

async fn plan(
    cluster: &Cluster,
    server: &Server,
    course: Course,
    kind: &str,
    say: Say<'_>,
) -> Result<Plan, Error> {
    let account = server.account();
    let lacking = right::lacking(cluster, &account).await?;
    if !lacking.stock.is_empty() {
        say(&format!(
            "{}: ServiceAccount {account} may not list and watch {}, without which CoreDNS answers for nothing: is it the right one?",
            cluster.name,
            lacking.stock.join(", ")
        ));
    }
    let corefile = match course {
        Course::Write(corefile) => Some(corefile),
        Course::Leave | Course::Foreign(_) => None,
    };
    let lines = corefile::ours(corefile.as_ref().unwrap_or(&server.corefile)).unwrap_or_default();
    let reason = restart::reason(lines, kind);
    // Lines that somebody took away and that are there again were a reason before.
    let is_due = |deployment| corefile.is_some() || restart::last_reason(deployment) != Some(&*reason);
    let restart = server.deployment.as_ref().is_some_and(is_due).then_some(reason);
    Ok(Plan { objects: lacking.objects, corefile, restart })
}

/// A dry run.
async fn show(
    cluster: &Cluster,
    options: &DnsOptions,
    server: &Server,
    plan: &Plan,
    say: Say<'_>,
) -> Result<(), Error> {
    if plan.is_empty() {
        say(&nothing_to_do(cluster));
        return Ok(());
    }
    let run = run(options);
    Installer::new(cluster, &run, &mut *say).install(Part::Member, &plan.objects).await?;
    if let Some(corefile) = &plan.corefile {
        say(&format!("\n{}", change::diff(server, corefile)));
    }
    if plan.restart.is_some() {
        say(&format!("{}: would restart Deployment {}", cluster.name, server.name));
    }
    say(&format!("next: {}", options.command("--apply")));
    Ok(())
}

async fn apply(
    cluster: &Cluster,
    options: &DnsOptions,
    server: &Server,
    plan: &Plan,
    say: Say<'_>,
) -> Result<(), Error> {
    let run = run(options);
    Installer::new(cluster, &run, &mut *say).install(Part::Member, &plan.objects).await?;
    if let Some(corefile) = &plan.corefile {
        change::write(cluster, server, corefile).await?;
        say(&format!("{}: changed ConfigMap {}: {KEY} has {ZONE}", cluster.name, server.name));
    }
    if let Some(reason) = &plan.restart {
        restart::restart(cluster, &server.name, Some(reason)).await?;
        say(&format!("{}: restarted Deployment {}", cluster.name, server.name));
    }
    if plan.is_empty() {
        say(&nothing_to_do(cluster));
    }
    if server.deployment.is_none() {
        if plan.corefile.is_some() {
            say(&format!("next: restart CoreDNS in {}, which reads its {KEY} when it starts", cluster.name));
        }
        return Ok(());
    }
    let next = format!("To take it back: {}", options.command("--remove --apply"));
    restart::rolled_out(cluster, &server.name, options.timeout, &next, &mut *say).await?;
    if !plan.is_empty() {
        say(&format!("{}: CoreDNS is rolled out: imports have names in {ZONE}", cluster.name));
    }
    Ok(())
}

fn nothing_to_do(cluster: &Cluster) -> String {
    format!("{}: CoreDNS has all it needs for {ZONE}: nothing to do", cluster.name)
}

fn run(options: &DnsOptions) -> Run {
    Run {
        daemons: Daemons::Inside { image: None },
        only: vec![],
        wait: true,
        timeout: options.timeout,
        dry_run: !options.apply,
        warn: |_| {},
    }
}
