//! Copies the credential into the member's Secret, or says how to do that by hand.

use k8s_openapi::ByteString;
use kit::client::{CA, NAMED_CA, TOKEN};
use serde_json::{Value, json};

use super::Membership;
use crate::{
    Error,
    cluster::Cluster,
    install::Installer,
    objects::{
        SYSTEM, access, area,
        member::{self, Credential},
    },
};

impl Installer<'_> {
    /// Puts the credential into the member's Secret.
    pub(crate) async fn hand_over(&mut self, set: &str, credential: &Credential) -> Result<(), Error> {
        self.fill(SYSTEM, &member::secret_name(set), data(credential.clone())).await
    }

    /// Says how to copy the credential, which a dry run does not print because it is secret.
    pub(super) fn say_how_to_hand_over(&mut self, membership: &Membership, leader: &Cluster) {
        let command = by_hand(membership, &self.cluster.name, &leader.name);
        self.say_plainly(&format!(
            "---\n# Once the leader's half is applied, copy the credential, which freeport does itself when it applies:\n{command}"
        ));
    }
}

/// What the Secret holds of the credential. What is left out stays as it is there, unless we wrote it: so what is noted is always written
/// again.
fn data(Credential { ca, named, token }: Credential) -> Value {
    let mut data = json!({CA: ByteString(ca), TOKEN: ByteString(token)});
    if let Some(named) = named {
        data[NAMED_CA] = json!(ByteString(named));
    }
    data
}

/// The command, as a comment, that puts into the Secret what [`Installer::hand_over`] puts there: a token of the same account, and the same
/// authorities, wherever they are from.
fn by_hand(membership: &Membership, here: &str, there: &str) -> String {
    let Membership { set, id, ca, .. } = membership;
    let (area, account, secret) = (area::name(set), access::account(id), member::secret_name(set));
    let ca = ca.clone().map(|pem| json!(ByteString(pem)));
    let ca = ca.as_ref().and_then(|encoded| encoded.as_str()).map_or_else(
        || {
            let map = r#"get configmap kube-root-ca.crt -o go-template='{{index .data "ca.crt"}}'"#;
            format!(r"$(kubectl --context {there} -n {area} {map} | base64 | tr -d '\n')")
        },
        str::to_owned,
    );
    let patch = r#"'{"stringData":{"token":"%s"},"data":{"ca.crt":"%s"}}'"#;
    format!(
        "# kubectl --context {here} -n {SYSTEM} patch secret {secret} --type merge -p \"$(printf {patch} \\\n\
         #   \"$(kubectl --context {there} -n {area} create token {account} --duration 24h)\" \\\n\
         #   \"{ca}\")\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_of_authorities_is_written_beside_them() {
        let credential = Credential { ca: b"A".into(), named: Some(b"A".into()), token: b"t".into() };
        assert_eq!(
            data(credential.clone()),
            json!({"ca.crt": "QQ==", "named-ca.crt": "QQ==", "token": "dA=="})
        );
        let unknown = Credential { named: None, ..credential };
        assert_eq!(data(unknown), json!({"ca.crt": "QQ==", "token": "dA=="}));
    }

    #[test]
    fn by_hand_the_member_trusts_the_same_authorities() {
        let membership = |ca: Option<&[u8]>| Membership {
            set: "demo".into(),
            id: "east".into(),
            leader_id: "hub".into(),
            server: "https://hub:6443".into(),
            ca: ca.map(Into::into),
            ranges: None,
        };
        let of_the_cluster = by_hand(&membership(None), "east", "hub");
        assert!(
            of_the_cluster.contains(r#"'{{index .data "ca.crt"}}' | base64 | tr -d '\n')")""#),
            "{of_the_cluster}"
        );
        let of_the_kubeconfig = by_hand(&membership(Some(b"PEM")), "east", "hub");
        assert!(of_the_kubeconfig.contains(r#"  "UEVN")""#), "{of_the_kubeconfig}");
        for command in [of_the_cluster, of_the_kubeconfig] {
            assert!(
                command.contains(r#"printf '{"stringData":{"token":"%s"},"data":{"ca.crt":"%s"}}'"#),
                "{command}"
            );
            assert!(command.contains("create token freeport-member-east --duration 24h"), "{command}");
            assert!(command.lines().all(|line| line.starts_with("# ")), "{command}");
        }
    }
}
