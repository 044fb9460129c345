//! The command line of `freeport dns`.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::{duration::duration, reaching::Where};
use crate::{DnsOptions, Namespaced};

#[derive(ClapArgs, Debug)]
pub(super) struct DnsArgs {
    /// Make the changes; otherwise they are only shown.
    #[arg(long)]
    apply: bool,
    /// Undo what --apply did.
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    place: Where,
    /// ConfigMap with the Corefile.
    ///
    /// The Deployment of CoreDNS is found by the same name.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value_t = Namespaced::coredns())]
    config_map: Namespaced,
    /// Limit of the wait for CoreDNS' new Pods.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

impl From<DnsArgs> for DnsOptions {
    fn from(args: DnsArgs) -> Self {
        Self {
            cluster: args.place.into(),
            config_map: args.config_map,
            remove: args.remove,
            apply: args.apply,
            timeout: args.timeout,
        }
    }
}
