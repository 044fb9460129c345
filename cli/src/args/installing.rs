//! The command lines of `freeport init` and `freeport join`.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};

use super::{duration::duration, reaching::LoginArgs};
use crate::{
    AddressRanges, Cidrs, Daemons, Error, InitOptions, Installed, JoinOptions, KubeContext, Offloading, Part,
    Probe, Run, objects::offload::webhook,
};

#[derive(ClapArgs, Debug)]
pub(super) struct InitArgs {
    /// ID of this cluster in the set: a DNS label, or two.
    #[arg(long, value_name = "ID")]
    cluster_id: String,
    /// Only lead: do not make this cluster a member as well.
    #[arg(long)]
    dedicated: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(ClapArgs, Debug)]
pub(super) struct JoinArgs {
    /// ID of this cluster, unique in the set: a DNS label, or two.
    #[arg(long, value_name = "ID")]
    cluster_id: String,
    #[command(flatten)]
    leader: Leader,
    #[command(flatten)]
    common: Common,
}

#[derive(ClapArgs, Debug)]
pub(super) struct Leader {
    /// Kubeconfig of the leader's cluster [default: as --kubeconfig].
    #[arg(long, value_name = "FILE")]
    leader_kubeconfig: Option<PathBuf>,
    /// Context of the leader's cluster [default: the current one].
    #[arg(long, value_name = "NAME", required_unless_present = "leader_kubeconfig")]
    leader_context: Option<String>,
}

impl Leader {
    /// The leader's cluster, in the kubeconfig of the other ones unless it has its own.
    pub(super) fn context(self, file: Option<&PathBuf>, login: &LoginArgs) -> KubeContext {
        login.context(self.leader_kubeconfig.or_else(|| file.cloned()), self.leader_context)
    }
}

#[derive(ClapArgs, Debug)]
struct Common {
    /// Name of the ClusterSet: a DNS label of at most 52 characters.
    #[arg(long, value_name = "NAME")]
    clusterset: String,
    /// Kubeconfig of this cluster, as administrator [default: as kubectl].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of this cluster [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Leader's API server as members reach it [default: as here].
    #[arg(long, value_name = "URL")]
    leader_server: Option<String>,
    /// Set up offloading of Namespaces as well.
    #[arg(long)]
    offload: bool,
    /// freeport-webhook as the API server reaches it, with --external.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    webhook_url: Option<String>,
    /// Whether the member tests endpoints of other clusters, and sends no traffic to clusters where none answers.
    #[arg(long, value_enum, value_name = "WHETHER", hide_short_help = true)]
    probe: Option<Probe>,
    /// Ranges of addresses that endpoints exported from here may have, `auto` (read from the cluster) or `any` [default: as noted, else any].
    #[arg(long, value_name = "CIDR,...", hide_short_help = true)]
    pod_cidrs: Option<Cidrs>,
    /// The same for Services, where the member exports ClusterIPs; `auto`: read from the cluster.
    #[arg(long, value_name = "CIDR,...", requires = "pod_cidrs", hide_short_help = true)]
    service_cidrs: Option<Cidrs>,
    /// Do only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART", help_heading = "How it is done")]
    only: Vec<Part>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    login: LoginArgs,
}

/// Where daemons run, and how long it is waited for them.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "How it is done")]
pub(super) struct RunArgs {
    /// Image with both daemons [default: as deployed, else freeport:VERSION].
    #[arg(long, value_name = "IMAGE", conflicts_with = "external")]
    image: Option<String>,
    /// Pods of each daemon, one of them active [default: as is, else 1].
    #[arg(long, value_name = "N", conflicts_with = "external", value_parser = clap::value_parser!(u8).range(1..=9))]
    replicas: Option<u8>,
    /// Write kubeconfigs for daemons that run elsewhere; no Deployments.
    #[arg(long, value_name = "DIR")]
    external: Option<PathBuf>,
    /// Do not wait until the daemons are ready.
    #[arg(long)]
    no_wait: bool,
    /// Limit of each wait.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Print the objects for kubectl apply -f; changes nothing.
    ///
    /// In a new cluster, apply CRDs first (init and join: --only crds): kubectl cannot apply a CRD and an object of its kind in one run.
    /// A join changes two clusters, and needs --only.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Form of what --dry-run prints.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml, requires = "dry_run", hide_short_help = true)]
    output: Output,
}

impl RunArgs {
    /// Of these parts; of all if there are none.
    pub(super) fn only(self, only: Vec<Part>) -> Run {
        let daemons = match self.external {
            Some(dir) => Daemons::Outside(dir),
            None => Daemons::Inside { image: self.image, replicas: self.replicas },
        };
        Run {
            daemons,
            only,
            wait: !self.no_wait,
            timeout: self.timeout,
            dry_run: self.dry_run,
            aside: crate::args::aside,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// One YAML document for each object, in the order of applying.
    Yaml,
}

impl Common {
    fn offloading(&self) -> Result<Option<Offloading>, Error> {
        if self.webhook_url.is_some() && !self.offload {
            return Err(Error::Argument("--webhook-url is for offloading: add --offload".into()));
        }
        Ok(self.offload.then(|| Offloading { webhook_url: self.webhook_url.clone() }))
    }

    fn ranges(&self) -> Option<AddressRanges> {
        let services = self.service_cidrs.clone();
        self.pod_cidrs.clone().map(|pods| AddressRanges { pods, services })
    }
}

impl TryFrom<InitArgs> for InitOptions {
    type Error = Error;

    fn try_from(args: InitArgs) -> Result<Self, Error> {
        let common = args.common;
        Ok(Self {
            offload: common.offloading()?,
            probe: common.probe,
            ranges: common.ranges(),
            cluster_set: common.clusterset,
            cluster_id: args.cluster_id,
            dedicated: args.dedicated,
            cluster: common.login.context(common.kubeconfig, common.context),
            leader_server: common.leader_server,
            run: common.run.only(common.only),
        })
    }
}

impl TryFrom<JoinArgs> for JoinOptions {
    type Error = Error;

    fn try_from(args: JoinArgs) -> Result<Self, Error> {
        let common = args.common;
        Ok(Self {
            offload: common.offloading()?,
            probe: common.probe,
            ranges: common.ranges(),
            cluster_set: common.clusterset,
            cluster_id: args.cluster_id,
            leader: args.leader.context(common.kubeconfig.as_ref(), &common.login),
            cluster: common.login.context(common.kubeconfig, common.context),
            leader_server: common.leader_server,
            run: common.run.only(common.only),
        })
    }
}

type Say<'a> = &'a mut (dyn FnMut(&str) + Send);

/// What to do after `init`.
pub(super) fn after_init(options: &InitOptions, installed: &Installed, say: Say<'_>) {
    if options.run.dry_run {
        return;
    }
    start_daemons(installed, say);
    let leader = options.cluster.name.as_deref().unwrap_or("LEADER");
    let offload = if options.offload.is_some() { " --offload" } else { "" };
    say(&format!(
        "next: freeport join --clusterset {} --cluster-id ID --context CLUSTER --leader-context {leader}{offload}, for each other cluster",
        options.cluster_set
    ));
}

/// What to do after `join`.
pub(super) fn after_join(options: &JoinOptions, installed: &Installed, say: Say<'_>) {
    if options.run.dry_run {
        return;
    }
    start_daemons(installed, say);
    let context = options.cluster.name.as_ref().map(|name| format!(" --context {name}")).unwrap_or_default();
    say(&format!(
        "next: freeport status{context}; and to export a Service: a ServiceExport of its name beside it"
    ));
}

/// How to run the daemons that run outside. Those of one cluster on one host must not listen on the same port.
fn start_daemons(installed: &Installed, say: Say<'_>) {
    if let Some(kubeconfig) = &installed.leader {
        say(&format!("next: freeport-leader --kubeconfig {} --listen '[::]:8080'", kubeconfig.display()));
    }
    if let Some(kubeconfig) = &installed.member {
        let offload = if installed.offloads { " --offload" } else { "" };
        say(&format!(
            "next: freeport-member --kubeconfig {} --listen '[::]:8081'{offload}",
            kubeconfig.display()
        ));
    }
    if let Some(kubeconfig) = &installed.webhook {
        say(&format!(
            "next: freeport-webhook --kubeconfig {} --listen '[::]:8082' --webhook-listen '[::]:{}' --tls-dir DIR, with tls.crt and tls.key of \
             Secret freeport-system/freeport-webhook-tls in DIR",
            kubeconfig.display(),
            webhook_port(installed.webhook_url.as_deref())
        ));
    }
}

/// The port of the URL at which the API server asks the webhook; that of this version where none was said yet.
fn webhook_port(url: Option<&str>) -> u16 {
    let Some(uri) = url.and_then(api::cluster_set::server_uri) else { return webhook::PORT };
    uri.port_u16().unwrap_or(443)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn the_leader_is_found_in_the_same_kubeconfig_unless_it_has_its_own() {
        let parse = |more: &[&str]| {
            let line =
                ["freeport", "join", "--clusterset", "demo", "--cluster-id", "east", "--external", "out"];
            Args::try_parse_from(line.iter().chain(more))
        };
        let options = |more: &[&str]| match parse(more).unwrap().command {
            Command::Join(args) => JoinOptions::try_from(args).unwrap(),
            _ => panic!("join was asked for"),
        };

        assert!(parse(&[]).is_err(), "a join without a leader");
        let one = options(&["--kubeconfig", "all", "--leader-context", "leader"]);
        assert_eq!(one.leader.to_string(), "context \"leader\" of all");
        assert_eq!(one.cluster.to_string(), "current context of all");
        let two = options(&["--kubeconfig", "east", "--leader-kubeconfig", "leader"]);
        assert_eq!(two.leader.to_string(), "current context of leader");
    }

    #[test]
    fn a_webhook_outside_listens_where_the_api_server_asks_it() {
        assert_eq!(webhook_port(Some("https://10.0.0.1:9443/mutate/pod")), 9443);
        assert_eq!(webhook_port(Some("https://hooks.example.com/mutate/pod")), 443);
        assert_eq!(webhook_port(None), 8443);
        let mut lines = Vec::new();
        let installed = Installed {
            webhook: Some("out/freeport-webhook.kubeconfig".into()),
            webhook_url: Some("https://127.0.0.1:9443/mutate/pod".into()),
            ..Installed::default()
        };
        start_daemons(&installed, &mut |line| lines.push(line.to_owned()));
        assert!(lines[0].contains("--webhook-listen '[::]:9443'"), "{lines:?}");
    }
}
