//! Flags that programs share, and the file they can come from. A flag beats its environment variable beats the file.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use api::lease::Pace;
use clap::{ArgAction, ArgMatches, CommandFactory, Parser, ValueEnum, error::ErrorKind, parser::ValueSource};
use serde_yaml::Value;

/// Flags of every program that runs in a cluster.
#[derive(clap::Args, Clone, Debug)]
pub struct ProcessArgs {
    /// YAML file with these settings, keyed by the flags' names without dashes in front; flags and environment win.
    #[arg(long, env = "FREEPORT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Kubeconfig for the cluster this program serves [default: $KUBECONFIG, else the Pod's ServiceAccount].
    #[arg(long, env = "FREEPORT_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Address for /healthz, /readyz and /metrics; `[::]` is all addresses of both IP families.
    #[arg(long, env = "FREEPORT_LISTEN", default_value = "[::]:8080")]
    pub listen: SocketAddr,
    /// How log lines look.
    #[arg(long, env = "FREEPORT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Which log lines are written.
    #[arg(long, env = "FREEPORT_LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,
}

/// Flags of both daemons.
#[derive(clap::Args, Clone, Debug)]
pub struct DaemonArgs {
    /// Flags of every program.
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Namespace of this daemon, its ClusterSet and Secrets [default: $POD_NAMESPACE, else freeport-system].
    #[arg(long, env = "FREEPORT_NAMESPACE")]
    pub namespace: Option<String>,
    /// Seconds after its last renewal at which the Lease of this daemon is stale, which shows that the daemon is gone. It is
    /// renewed three times in this time.
    #[arg(long, env = "FREEPORT_LEASE_SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(6..=3600))]
    pub lease_seconds: u16,
    /// Name of this replica, where several of this daemon run for one cluster: one of them is active, the others stand by. In Pods it
    /// is the name of the Pod [default: this is the only one].
    #[arg(long, env = "FREEPORT_REPLICA", value_name = "NAME")]
    pub replica: Option<String>,
}

/// Shape of log lines.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Least important line to log.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Only what ends the daemon.
    Error,
    /// What needs somebody's attention.
    Warn,
    /// What changed.
    Info,
    /// What was looked at.
    Debug,
}

impl DaemonArgs {
    /// How often this daemon renews its Leases.
    pub fn pace(&self) -> Pace {
        Pace::lasting(self.lease_seconds)
    }

    /// The Namespace of this daemon.
    pub fn namespace(&self) -> String {
        let pod = || std::env::var("POD_NAMESPACE").ok().filter(|ns| !ns.is_empty());
        self.namespace.clone().or_else(pod).unwrap_or_else(|| "freeport-system".into())
    }
}

/// Parses flags, environment and the file that `--config` names. The error is ready to be printed; its exit code is 2.
pub fn parse<A: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<A, clap::Error> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let matches = A::command().try_get_matches_from(&args)?;
    if let Some(file) = matches.get_one::<PathBuf>("config") {
        let text = std::fs::read_to_string(file)
            .map_err(|error| refuse::<A>(&format!("--config {}: {error}", file.display())))?;
        let extra =
            from_file::<A>(&text, &matches).map_err(|e| refuse::<A>(&format!("{}: {e}", file.display())))?;
        args.extend(extra);
    }
    A::from_arg_matches(&A::command().try_get_matches_from(&args)?)
}

/// The file's settings as flags, without those that flags or environment decide.
fn from_file<A: CommandFactory>(text: &str, matches: &ArgMatches) -> Result<Vec<OsString>, String> {
    let settings: serde_yaml::Mapping = match serde_yaml::from_str(text).map_err(|e| e.to_string())? {
        Value::Null => serde_yaml::Mapping::new(),
        Value::Mapping(settings) => settings,
        _ => return Err("must be a mapping from settings to values".into()),
    };
    let command = A::command();
    let known =
        |key: &str| command.get_arguments().find(|arg| arg.get_long() == Some(key) && key != "config");
    let mut args = Vec::new();
    for (key, value) in &settings {
        let key = key.as_str().unwrap_or_default();
        let Some(arg) = known(key) else {
            let names: Vec<_> =
                command.get_arguments().filter_map(clap::Arg::get_long).filter(|n| *n != "config").collect();
            return Err(format!("unknown key {key:?}; the keys are {}", names.join(", ")));
        };
        let decided = matches.value_source(arg.get_id().as_str());
        if matches!(decided, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
            continue;
        }
        match (value, arg.get_action()) {
            (Value::Bool(true), ArgAction::SetTrue) => args.push(format!("--{key}").into()),
            (Value::Bool(false), ArgAction::SetTrue) => {}
            (Value::String(text), _) => args.push(format!("--{key}={text}").into()),
            (Value::Number(number), _) => args.push(format!("--{key}={number}").into()),
            (Value::Bool(flag), _) => args.push(format!("--{key}={flag}").into()),
            _ => return Err(format!("{key:?} must be a single value")),
        }
    }
    Ok(args)
}

fn refuse<A: CommandFactory>(message: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, format!("{message}\n")).with_cmd(&A::command())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[derive(Parser, Debug)]
    struct Args {
        #[command(flatten)]
        daemon: DaemonArgs,
        /// Only here.
        #[arg(long)]
        dry: bool,
    }

    fn parse_with(file: &str, flags: &[&str]) -> Result<Args, String> {
        let mut config = tempfile::NamedTempFile::new().unwrap();
        config.write_all(file.as_bytes()).unwrap();
        let args = ["x", "--config", config.path().to_str().unwrap()]
            .into_iter()
            .chain(flags.iter().copied())
            .map(OsString::from);
        parse::<Args>(args.collect::<Vec<_>>()).map_err(|e| e.to_string())
    }

    #[test]
    fn the_file_fills_what_flags_leave_open() {
        let args =
            parse_with("listen: 127.0.0.1:1\nlog-format: json\ndry: true\n", &["--listen", "127.0.0.1:2"])
                .unwrap();
        assert_eq!(args.daemon.process.listen, "127.0.0.1:2".parse().unwrap());
        assert_eq!(args.daemon.process.log_format, LogFormat::Json);
        assert!(args.dry);
        assert_eq!(args.daemon.namespace(), "freeport-system");
        assert!(parse_with("", &[]).is_ok());
    }

    #[test]
    fn errors_name_the_key_and_what_it_accepts() {
        let unknown = parse_with("lissten: x\n", &[]).unwrap_err();
        assert!(unknown.contains("\"lissten\"") && unknown.contains("log-level"), "{unknown}");
        let wrong = parse_with("log-level: loud\n", &[]).unwrap_err();
        assert!(wrong.contains("--log-level") && wrong.contains("warn"), "{wrong}");
        assert!(parse_with("- a\n", &[]).unwrap_err().contains("mapping"));
        assert!(parse_with("listen: [1]\n", &[]).unwrap_err().contains("\"listen\" must be a single value"));
        let missing = parse::<Args>(["x", "--config", "/nowhere"].map(OsString::from)).unwrap_err();
        assert_eq!(missing.exit_code(), 2);
    }
}
