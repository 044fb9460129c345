//! The command line of `freeport get`.

use clap::{Args as ClapArgs, ValueEnum};

use super::{
    Outcome, aside,
    reaching::Looked,
    showing::{json, print},
};
use crate::{Error, GetOptions, Listed, get, listed_names, listed_text, printable::printable};

#[derive(ClapArgs, Debug)]
pub(super) struct GetArgs {
    /// What to list.
    #[arg(value_enum)]
    what: What,
    /// Namespace [default: that of the first context].
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// List all Namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Labels that the objects have.
    ///
    /// For imports and services those of ServiceImports, for exports and conflicts those of ServiceExports.
    #[arg(short = 'l', long, value_name = "LABELS", default_value = "", hide_default_value = true)]
    selector: String,
    /// Form of the list.
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = Form::Table, hide_default_value = true)]
    output: Form,
    /// Print no line with the names of the columns.
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    clusters: Looked,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Services,
    Exports,
    Imports,
    Clusters,
    Conflicts,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// For people.
    Table,
    /// With more columns.
    Wide,
    /// For machines, in a shape that stays.
    Json,
    /// The same as YAML.
    Yaml,
    /// Names only, as `freeport why` takes them.
    Name,
}

impl From<What> for Listed {
    fn from(what: What) -> Self {
        match what {
            What::Services => Self::Services,
            What::Exports => Self::Exports,
            What::Imports => Self::Imports,
            What::Clusters => Self::Clusters,
            What::Conflicts => Self::Conflicts,
        }
    }
}

impl TryFrom<GetArgs> for GetOptions {
    type Error = Error;

    fn try_from(args: GetArgs) -> Result<Self, Error> {
        let listed = Listed::from(args.what);
        if listed == Listed::Clusters && !args.selector.is_empty() {
            return Err(Error::Argument(
                "--selector: clusters have no labels. try: freeport get clusters".into(),
            ));
        }
        let contexts: Vec<crate::KubeContext> = args.clusters.try_into()?;
        let namespace = match (args.all_namespaces, args.namespace, contexts.first()) {
            (true, ..) => None,
            (false, Some(namespace), _) => Some(namespace),
            (false, None, first) => first.map(crate::KubeContext::namespace).transpose()?,
        };
        Ok(Self { listed, contexts, namespace, labels: args.selector })
    }
}

/// Prints the list; on stderr, what was not looked at.
pub(super) async fn show(args: GetArgs) -> Result<Outcome, Error> {
    let (form, headers) = (args.output, !args.no_headers);
    let options: GetOptions = args.try_into()?;
    let listing = Box::pin(get(&options)).await?;
    for line in &listing.not_looked_at {
        aside(&format!("note: {}", printable(line)));
    }
    match form {
        Form::Table => print(&listed_text(&listing, false, headers))?,
        Form::Wide => print(&listed_text(&listing, true, headers))?,
        Form::Name => print(&listed_names(&listing))?,
        Form::Json => print(&(json(&listing)? + "\n"))?,
        Form::Yaml => {
            let yaml = serde_yaml::to_string(&listing);
            print(&yaml.map_err(|source| Error::Yaml { object: "the list".into(), source })?)?;
        }
    }
    // With gaps it is not known whether there is nothing.
    let is_nothing = listing.items.is_empty() && listing.not_looked_at.is_empty();
    if is_nothing && matches!(form, Form::Table | Form::Wide) {
        let place = options.namespace.filter(|_| options.listed != Listed::Clusters);
        aside(&place.map_or_else(
            || "nothing found".to_owned(),
            |namespace| format!("nothing found in Namespace {namespace}; -A lists all Namespaces"),
        ));
    }
    Ok(if listing.is_unseen { Outcome::Unseen } else { Outcome::Well })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        get: GetArgs,
    }

    fn options(line: &str) -> Result<GetOptions, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let config = "{current-context: west, contexts: [{name: east, context: {cluster: c, namespace: shop}}, \
                      {name: west, context: {cluster: c}}]}";
        file.write_all(config.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap();
        let words = ["get"].into_iter().chain(line.split_whitespace()).chain(["--kubeconfig", path]);
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.get.try_into().map_err(|error: Error| error.to_string())
    }

    #[test]
    fn the_namespace_is_that_of_the_context_as_for_kubectl() {
        let namespace = |line: &str| options(line).unwrap().namespace;
        assert_eq!(namespace("services --context east").as_deref(), Some("shop"));
        assert_eq!(namespace("services").as_deref(), Some("default"));
        assert_eq!(namespace("exports -n other --context east").as_deref(), Some("other"));
        assert_eq!(namespace("imports -A --all-contexts"), None);
        assert!(options("imports -A -n shop").is_err());
        assert!(options("imports --context gone").unwrap_err().contains("there is no context \"gone\""));
    }

    #[test]
    fn clusters_have_no_labels() {
        assert!(options("clusters -l a=b").unwrap_err().contains("--selector"));
        assert_eq!(options("exports -l a=b").unwrap().labels, "a=b");
    }
}
