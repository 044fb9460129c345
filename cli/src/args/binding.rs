//! The command lines of `freeport bind`.

mod consumer;
mod provider;

use clap::{Args as ClapArgs, Subcommand};

use self::{
    consumer::{ApiServiceArgs, RemoveArgs},
    provider::{OfferArgs, ProvideArgs, TemplatesArgs},
};
use super::{Outcome, showing::shown};
use crate::{Error, ProvideOptions, bind_apiservice, offer, offer_text, offers, provide, remove};

#[derive(ClapArgs, Debug)]
pub(super) struct BindArgs {
    #[command(subcommand)]
    command: BindCommand,
}

#[derive(Subcommand, Debug)]
enum BindCommand {
    /// Make a cluster a provider: others may become consumers of its APIs.
    ///
    /// Installs CRDs, rights and a leader that serves consumers. Nothing is offered yet. Run again, it changes only what differs.
    Provide(ProvideArgs),
    /// Offer APIs of this provider, by a template.
    ///
    /// Labels their CRDs, writes the rights that consumers get, and an APIServiceExportTemplate. Run again, it changes only what differs.
    Offer(OfferArgs),
    /// Show what a provider offers.
    Templates(TemplatesArgs),
    /// Use an API of a provider here.
    ///
    /// At the provider: a contract, and what its template offers. Here: a Secret with the credential, rights on those APIs, a member, an
    /// APIServiceBinding. Two people do one half each with --only. Run again, it changes only what differs. What the provider exports beside the
    /// APIs that were asked for is refused without --agree.
    Apiservice(ApiServiceArgs),
    /// End a binding: its objects go, with their copies at the provider, then its CRDs.
    ///
    /// Says how many. With --provider-context the export and, with the last one, the contract end, too. Run again, it continues.
    Remove(RemoveArgs),
}

type Say<'a> = &'a mut (dyn FnMut(&str) + Send);

/// Runs `freeport bind`.
pub(super) async fn bind(args: BindArgs, say: Say<'_>) -> Result<Outcome, Error> {
    match args.command {
        BindCommand::Provide(args) => provide_as(args, say).await?,
        BindCommand::Offer(args) => {
            let options = args.into();
            offer(&options, say).await?;
            if !options.run.dry_run {
                say(&format!(
                    "next: freeport bind apiservice NAME --template {} --context CONSUMER --provider-context PROVIDER",
                    options.template
                ));
            }
        }
        BindCommand::Templates(args) => {
            let found = offers(&args.place.into()).await?;
            return shown(&found, args.output, |found| offer_text(found), true);
        }
        BindCommand::Apiservice(args) => {
            let kubeconfig = bind_apiservice(&args.try_into()?, say).await?;
            if let Some(kubeconfig) = kubeconfig {
                say(&format!(
                    "next: freeport-member --kubeconfig {} --listen '[::]:8081' --bind",
                    kubeconfig.display()
                ));
            }
        }
        BindCommand::Remove(args) => remove(&args.try_into()?, say).await?,
    }
    Ok(Outcome::Well)
}

async fn provide_as(args: ProvideArgs, say: Say<'_>) -> Result<(), Error> {
    let options: ProvideOptions = args.into();
    let provided = provide(&options, say).await?;
    if options.run.dry_run {
        return Ok(());
    }
    if let Some(kubeconfig) = &provided.kubeconfig {
        let told: Vec<_> = provided.told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        say(&format!(
            "next: {} freeport-leader --kubeconfig {} --listen '[::]:8080'",
            told.join(" "),
            kubeconfig.display()
        ));
    }
    say("next: freeport bind offer TEMPLATE --resource PLURAL.GROUP");
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{
        ApiServiceOptions, Halves, RemoveOptions,
        args::{Args, Command},
    };

    fn options(line: &str) -> Result<ApiServiceOptions, Error> {
        let words = ["freeport", "bind", "apiservice", "mango"].into_iter().chain(line.split_whitespace());
        match Args::try_parse_from(words).unwrap().command {
            Command::Bind(BindArgs { command: BindCommand::Apiservice(args) }) => args.try_into(),
            _ => panic!("a binding was asked for"),
        }
    }

    #[test]
    fn one_person_does_both_halves_and_two_people_one_each() {
        let both = options("-t db --context east --provider-context leader --kubeconfig f").unwrap();
        let Halves::Both { provider, consumer, .. } = both.halves else { panic!("{:?}", both.halves) };
        assert_eq!(provider.to_string(), "context \"leader\" of f");
        assert_eq!(consumer.to_string(), "context \"east\" of f");
        let theirs = options("-t db --only provider --identity u --provider-context leader").unwrap();
        assert!(matches!(theirs.halves, Halves::Provider { .. }));
        assert!(matches!(options("-f answer.yaml").unwrap().halves, Halves::Consumer { .. }));
        assert!(options("-t db --dry-run").unwrap_err().to_string().contains("--only consumer"));
        assert!(options("-f answer.yaml --dry-run").is_ok());
        assert!(options("-t db --only provider --identity u --dry-run").is_ok());
        let agreed = options("-f answer.yaml --agree a.example.com --agree b.example.com").unwrap().agree;
        assert_eq!(agreed, ["a.example.com", "b.example.com"]);
    }

    #[test]
    fn what_a_half_lacks_or_does_not_take_is_said() {
        for (line, part) in [
            ("-t db --only provider", "--identity"),
            ("--only provider --identity u", "--template"),
            ("--only consumer", "-f FILE"),
            ("--only consumer -t db", "-f FILE"),
            ("", "--template, or -f"),
            ("-t db --identity u", "--only provider"),
            ("-t db --only provider --identity u --agree a.example.com", "--agree"),
            ("-f answer.yaml --only provider --identity u", "--only consumer"),
        ] {
            let said = options(line).unwrap_err();
            assert!(matches!(said, Error::Argument(_)) && said.to_string().contains(part), "{line}: {said}");
        }
    }

    #[test]
    fn the_identity_of_a_contract_is_asked_of_a_provider() {
        let remove = |line: &str| -> Result<RemoveOptions, Error> {
            let words = ["freeport", "bind", "remove", "mango"].into_iter().chain(line.split_whitespace());
            match Args::try_parse_from(words).unwrap().command {
                Command::Bind(BindArgs { command: BindCommand::Remove(args) }) => args.try_into(),
                _ => panic!("an end was asked for"),
            }
        };
        let named = remove("--provider-context leader --identity west").unwrap();
        assert_eq!(named.identity.as_deref(), Some("west"));
        assert!(remove("--identity west").unwrap_err().to_string().contains("--provider-context"));
    }
}
