//! Kubeconfigs for daemons that run outside of the cluster, each under the daemon's own ServiceAccount.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use api::label;
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{SelfSubjectReview, TokenRequest, TokenRequestSpec},
        core::v1::ServiceAccount,
    },
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{PartialObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::{
    Daemons, Error, Part, Run,
    cluster::Cluster,
    install::Installer,
    objects::{SYSTEM, offload::webhook},
    outside, proxy,
};

/// Requested lifetime of a token: a year. The API server may grant less.
///
/// A requested token is not stored in the cluster. A token Secret would be, in the Namespace whose Secrets the member may
/// read: then a member beside a leader would have the leader's rights.
const TOKEN_SECONDS: i64 = 365 * 24 * 3600;

impl Installer<'_> {
    /// Writes `DIR/<account>.kubeconfig`, mode 0600, unless the one there still works. None in a dry run, where the part is
    /// not wanted, and for a daemon that runs inside.
    pub(crate) async fn kubeconfig(&mut self, part: Part, account: &str) -> Result<Option<PathBuf>, Error> {
        let dir = match &self.run.daemons {
            Daemons::Outside(dir) if !self.run.dry_run && self.run.does(part) => dir,
            _ => return Ok(None),
        };
        let path = dir.join(format!("{account}.kubeconfig"));
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client.clone(), SYSTEM);
        let reading = format!("read ServiceAccount {SYSTEM}/{account}");
        let there = self.cluster.request(reading, accounts.get_metadata(account)).await?;
        outside::note(self.cluster, &there).await?;
        if still_works(self.cluster, &there, &path).await {
            self.say(&format!("unchanged {}", path.display()));
            return Ok(Some(path));
        }

        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let granted = self
            .cluster
            .request(
                format!("get a token of ServiceAccount {SYSTEM}/{account}"),
                accounts.create_token_request(account, &PostParams::default(), &request),
            )
            .await?
            .status
            .and_then(|status| status.token.zip(status.expiration_timestamp));
        let Some((token, expires)) = granted else {
            let reason = format!("the API server granted no token of ServiceAccount {SYSTEM}/{account}");
            return Err(self.cluster.refuse(reason));
        };

        let existed = path.exists();
        let text = serde_yaml::to_string(&content(self.cluster, account, &token))
            .map_err(|source| Error::Yaml { object: path.display().to_string(), source })?;
        store(&path, &text).map_err(|source| Error::File { path: path.clone(), source })?;
        self.say(&format!(
            "{} {} (its token expires at {}; run this again then)",
            if existed { "changed" } else { "created" },
            path.display(),
            expires.0,
        ));
        Ok(Some(path))
    }
}

/// Fails if the folder for daemons that run outside has a kubeconfig for another cluster: the daemon that uses it would go there.
pub(crate) fn folder_is_of(cluster: &Cluster, run: &Run) -> Result<(), Error> {
    let Daemons::Outside(dir) = &run.daemons else { return Ok(()) };
    for account in [label::LEADER, label::MEMBER, webhook::NAME] {
        let path = dir.join(format!("{account}.kubeconfig"));
        let file = std::fs::read_to_string(&path).ok();
        let found = file.and_then(|text| serde_yaml::from_str::<Value>(&text).ok());
        let server =
            found.and_then(|found| found.pointer("/clusters/0/cluster/server")?.as_str().map(str::to_owned));
        if let Some(server) = server.filter(|server| *server != cluster.server) {
            return Err(cluster.refuse(format!(
                "{} is for the daemon of another cluster, {server}: each cluster needs a folder of its own (--external). If \
                 that one is gone, delete the file",
                path.display()
            )));
        }
    }
    Ok(())
}

/// The kubeconfig, with everything it needs inside.
fn content(cluster: &Cluster, account: &str, token: &str) -> Value {
    let mut server = json!({"server": cluster.server});
    if let Some(ca) = &cluster.ca {
        server["certificate-authority-data"] = json!(ByteString(ca.clone()));
    }
    if let Some(name) = &cluster.tls_server_name {
        server["tls-server-name"] = json!(name);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": cluster.name,
        "contexts": [{
            "name": cluster.name,
            "context": {"cluster": cluster.name, "user": account, "namespace": SYSTEM},
        }],
        "clusters": [{"name": cluster.name, "cluster": server}],
        "users": [{"name": account, "user": {"token": token}}],
    })
}

/// Whether the file is what we would write but for the token, and the token is of this very ServiceAccount: for a while the API
/// server also accepts tokens of one that was deleted.
async fn still_works(cluster: &Cluster, account: &PartialObjectMeta<ServiceAccount>, path: &Path) -> bool {
    let name = account.name_any();
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    let Ok(found) = serde_yaml::from_str::<Value>(&text) else {
        return false;
    };
    let token = found.pointer("/users/0/user/token").and_then(Value::as_str);
    if found != content(cluster, &name, token.unwrap_or_default()) {
        return false;
    }
    let Ok(file) = Kubeconfig::from_yaml(&text) else {
        return false;
    };
    let Ok(mut config) = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await else {
        return false;
    };
    proxy::choose(&mut config, None);
    let Ok(client) = Client::try_from(config) else {
        return false;
    };
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let answer = cluster
        .request(
            "ask whose token it is",
            reviews.create(&PostParams::default(), &SelfSubjectReview::default()),
        )
        .await;
    let user = answer.ok().and_then(|review| review.status?.user_info).unwrap_or_default();
    user.username == Some(format!("system:serviceaccount:{SYSTEM}:{name}")) && user.uid == account.uid()
}

/// Writes the file in one step, readable for its owner alone.
fn store(path: &Path, text: &str) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    // Created with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
