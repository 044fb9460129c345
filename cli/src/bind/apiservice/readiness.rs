//! Whether a binding works.

use std::time::Instant;

use api::{
    bind::{binding::APIServiceBinding, condition::READY},
    label,
};

use super::Consumer;
use crate::{
    Error,
    bind::{consent, refused},
    install::Installer,
    rollout,
};

/// What is said where the member says nothing.
const UNSEEN: &str = "freeport-member has not seen it yet";

impl Consumer<'_> {
    /// Waits until the member says that the API is installed and in step. Fails where it reports that API servers refuse its writes.
    pub(super) async fn is_ready(&self, here: &mut Installer<'_>) -> Result<(), Error> {
        let since = (Instant::now(), self.run.timeout);
        let probe = async || {
            let binding = self.binding().await?;
            let ready = ready(binding.as_ref());
            if let (Err(_), Some(binding)) = (&ready, &binding) {
                refused::stop(self.cluster, binding, since)?;
            }
            Ok(ready)
        };
        let waiting =
            |message: &str| here.say(&format!("waiting for APIServiceBinding {}: {message}", self.name));
        match rollout::wait(self.run.timeout, probe, waiting).await? {
            Ok(message) => {
                for api in consent::exported(self.binding().await?.as_ref()) {
                    here.is_served(&api.name()).await?;
                }
                here.say(&format!("APIServiceBinding {} is ready: {message}", self.name));
                Ok(())
            }
            Err(message) => {
                let (cluster, limit) = (self.cluster.name.clone(), self.run.timeout);
                let is_unseen = message == UNSEEN;
                let message = format!("APIServiceBinding {}: {message}", self.name);
                // A member that says what is missing is not what has to be looked after.
                Err(match is_unseen {
                    true => Error::NotReady { cluster, daemon: label::MEMBER.into(), message, limit },
                    false => Error::Timeout { cluster, missing: message, limit },
                })
            }
        }
    }
}

/// What the member says of it: what it installed, or what is missing.
fn ready(binding: Option<&APIServiceBinding>) -> Result<String, String> {
    let status = binding.and_then(|binding| binding.status.clone()).unwrap_or_default();
    let Some(ready) = status.conditions.iter().find(|condition| condition.type_ == READY) else {
        return Err(UNSEEN.into());
    };
    if ready.status == "True" {
        let apis: Vec<_> = status
            .bound_schemas
            .iter()
            .map(|schema| format!("{}.{}", schema.resource, schema.group))
            .collect();
        return Ok(format!("{} of {}", apis.join(", "), status.provider_pretty_name.unwrap_or_default()));
    }
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    Err(format!("{}: {}", or_empty(&ready.reason), or_empty(&ready.message)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_ready_when_the_member_says_so() {
        let binding = |status: &str| -> APIServiceBinding {
            serde_json::from_value(json!({"metadata": {"name": "m"}, "spec": {"kubeconfigSecretRef": {"namespace": "n", "name": "s", "key": "k"}},
                "status": {"providerPrettyName": "P", "boundSchemas": [{"group": "g", "resource": "m"}],
                    "conditions": [{"type": "Ready", "status": status, "reason": "R", "message": "why", "lastTransitionTime": null}]}}))
            .unwrap()
        };
        assert!(ready(None).is_err());
        assert_eq!(ready(Some(&binding("False"))), Err("R: why".into()));
        assert_eq!(ready(Some(&binding("True"))), Ok("m.g of P".into()));
    }
}
