//! Copies the credential into the member's Secret, or says how to do that by hand.

use k8s_openapi::ByteString;
use serde_json::json;

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
    pub(super) async fn hand_over(&mut self, set: &str, credential: &Credential) -> Result<(), Error> {
        let name = member::secret_name(set);
        let data = json!({"ca.crt": ByteString(credential.ca.clone()), "token": ByteString(credential.token.clone())});
        self.fill(SYSTEM, &name, data).await
    }

    /// Says how to copy the credential, which a dry run does not print because it is secret.
    pub(super) fn say_how_to_hand_over(&mut self, membership: &Membership, leader: &Cluster) {
        let command = by_hand(membership, &self.cluster.name, &leader.name);
        self.say_plainly(&format!(
            "---\n# Once the leader's half is applied, copy the credential, which freeport does itself when it applies:\n{command}"
        ));
    }
}

/// The command, as a comment, that puts into the Secret what [`Installer::hand_over`] puts there: the same token, and the
/// same authorities, wherever they are from.
fn by_hand(membership: &Membership, here: &str, there: &str) -> String {
    let Membership { set, id, ca, .. } = membership;
    let (area, token, secret) = (area::name(set), access::token_secret(id), member::secret_name(set));
    let ca = ca.clone().map(|pem| json!(ByteString(pem)));
    let ca = ca.as_ref().and_then(|encoded| encoded.as_str()).unwrap_or("{{index .data \"ca.crt\"}}");
    format!(
        "# kubectl --context {here} -n {SYSTEM} patch secret {secret} --type merge -p \"$(kubectl --context {there} \\\n\
         #   -n {area} get secret {token} -o go-template='{{\"data\":{{\"token\":\"{{{{.data.token}}}}\",\"ca.crt\":\"{ca}\"}}}}')\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand_the_member_trusts_the_same_authorities() {
        let membership = |ca: Option<&[u8]>| Membership {
            set: "demo".into(),
            id: "east".into(),
            leader_id: "hub".into(),
            server: "https://hub:6443".into(),
            ca: ca.map(Into::into),
        };
        let of_the_token = by_hand(&membership(None), "east", "hub");
        assert!(of_the_token.contains(r#""ca.crt":"{{index .data "ca.crt"}}"}}'"#), "{of_the_token}");
        let of_the_kubeconfig = by_hand(&membership(Some(b"PEM")), "east", "hub");
        assert!(of_the_kubeconfig.contains(r#""ca.crt":"UEVN"}}'"#), "{of_the_kubeconfig}");
        for command in [of_the_token, of_the_kubeconfig] {
            assert!(command.contains(r#"'{"data":{"token":"{{.data.token}}","#), "{command}");
            assert!(command.contains("get secret freeport-member-east-token "), "{command}");
            assert!(command.lines().all(|line| line.starts_with("# ")), "{command}");
        }
    }
}
