//! Takes back what this cluster says about itself as a member.

use api::{
    about::{CLUSTER_ID, CLUSTER_SET},
    label,
};
use kit::{
    boot::Env,
    failure::{Failure, classify},
    write::{Error, Writer},
};
use kube::Api;

use crate::membership::object::Property;

/// Deletes the properties that we made: first that it belongs to a set, then its ID, which has to stay as it is until then.
pub(super) async fn remove(env: &Env) -> Result<(), Error> {
    let properties = Api::<Property>::all(env.client.clone());
    let writer = Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone());
    for name in [CLUSTER_SET, CLUSTER_ID] {
        let found = match properties.get_opt(name).await {
            Ok(found) => found,
            // An older role than ours: then we made none.
            Err(error) if matches!(classify(&error), Failure::Forbidden(_)) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(ours) = found.filter(Property::is_ours) {
            writer.delete(&ours, false).await?;
        }
    }
    Ok(())
}
