//! The command lines of `freeport why` and `freeport explain`.

use api::{ServiceName, name::is_dns_label};
use clap::Args as ClapArgs;
use picture::code::{Code, entry};

use super::{
    Outcome,
    reaching::Looked,
    showing::{print, print_marked},
};
use crate::{Error, WhyOptions, printable::printable, why};

#[derive(ClapArgs, Debug)]
pub(super) struct WhyArgs {
    /// The Service, as its exporters name it.
    #[arg(value_name = "NAMESPACE/NAME")]
    service: String,
    /// Cluster that imports, by ID or context [default: the first].
    #[arg(long, value_name = "CLUSTER")]
    from: Option<String>,
    #[command(flatten)]
    clusters: Looked,
}

impl TryFrom<WhyArgs> for WhyOptions {
    type Error = Error;

    fn try_from(args: WhyArgs) -> Result<Self, Error> {
        let service = service(&args.service, "freeport why shop/web")?;
        Ok(Self { service, from: args.from, contexts: args.clusters.try_into()? })
    }
}

/// What kubectl calls the kind, which is no Namespace that somebody asks about.
const KINDS: [&str; 4] = ["svc", "service", "services", "serviceexport"];

/// Reads `NAMESPACE/NAME`. `example`: a command line that is right.
pub(super) fn service(text: &str, example: &str) -> Result<ServiceName, Error> {
    let parts = text.split_once('/').filter(|(namespace, name)| {
        is_dns_label(namespace) && is_dns_label(name) && !KINDS.contains(namespace)
    });
    let (namespace, name) = parts.ok_or_else(|| {
        Error::Argument(format!("{text:?} is no NAMESPACE/NAME of a Service. try: {example}"))
    })?;
    Ok(ServiceName::new(namespace, name))
}

/// Reads several of them, and counts each once.
pub(super) fn services(all: &[String], example: &str) -> Result<Vec<ServiceName>, Error> {
    let mut services = Vec::new();
    for text in all {
        let service = service(text, example)?;
        if !services.contains(&service) {
            services.push(service);
        }
    }
    Ok(services)
}

/// Prints why a Service cannot be used; whether something was found.
pub(super) async fn show(args: WhyArgs) -> Result<Outcome, Error> {
    let options: WhyOptions = args.try_into()?;
    let why = Box::pin(why(&options)).await?;
    let lines: String = why.lines.iter().map(|line| printable(line) + "\n").collect();
    print_marked(&lines)?;
    Ok(match why.found {
        Some(true) => Outcome::Problems,
        Some(false) => Outcome::Well,
        None => Outcome::Unseen,
    })
}

#[derive(ClapArgs, Debug)]
pub(super) struct ExplainArgs {
    /// A code, as in FP501.
    #[arg(value_name = "CODE")]
    code: String,
}

/// Prints what is known of a code.
pub(super) fn explain(args: &ExplainArgs) -> Result<Outcome, Error> {
    let code: Code = args.code.parse().map_err(Error::Argument)?;
    print(&entry(code).map(picture::code::Entry::text).unwrap_or_default())?;
    Ok(Outcome::Well)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        why: WhyArgs,
    }

    fn options(line: &str) -> Result<WhyOptions, String> {
        let words = ["why"].into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.why.try_into().map_err(|error: Error| error.to_string())
    }

    #[test]
    fn what_is_no_service_is_said_with_an_example() {
        for wrong in ["web", "svc/web", "service/web", "shop/", "/web", "shop/web/x", "Shop/web"] {
            let error = options(wrong).unwrap_err();
            assert!(error.contains(&format!("{wrong:?}")) && error.contains("try: "), "{error}");
        }
        let right = options("shop/web").unwrap();
        assert_eq!(right.service.to_string(), "shop/web");
    }

    #[test]
    fn a_service_that_is_named_twice_counts_once() {
        let named = ["shop/web", "shop/api", "shop/web"].map(str::to_owned);
        let services: Vec<_> = services(&named, "").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(services, ["shop/web", "shop/api"]);
    }

    #[test]
    fn a_code_that_nobody_has_is_wrong_usage() {
        let explain = |code: &str| explain(&ExplainArgs { code: code.into() });
        assert!(matches!(explain("FP999"), Err(Error::Argument(_))));
        assert!(matches!(explain("fp501"), Ok(Outcome::Well)));
    }
}
