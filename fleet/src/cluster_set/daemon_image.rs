//! The image of both daemons and the webhook.

use api::label;

use crate::{
    Error, Fleet,
    image::{self, Image},
    program,
};

/// The program that places Pods.
const WEBHOOK: &str = "freeport-webhook";

/// Builds both daemons and the webhook, and loads an image of them into every node. Its name.
///
/// # Errors
/// [`Error::Program`], [`Error::File`], [`Error::NoNode`], [`Error::Image`], [`Error::Keeper`].
pub async fn load_daemons(fleet: &Fleet, name: DaemonImage) -> Result<String, Error> {
    let leader = program::static_path("leader", label::LEADER).await?;
    let member = program::static_path("member", label::MEMBER).await?;
    let webhook = program::static_path("webhook", WEBHOOK).await?;
    let reference = match name {
        // What a name without a registry stands for.
        DaemonImage::OfManifests => format!("docker.io/library/{}", cli::objects::DEFAULT_IMAGE),
        DaemonImage::OfContent => {
            let [of_leader, of_member, of_webhook] = [&leader, &member, &webhook]
                .map(|path| image::digest_of_file(path).map_err(Error::file(path)));
            format!("localhost/freeport:{:.12}-{:.12}-{:.12}", of_leader?, of_member?, of_webhook?)
        }
    };
    let image = Image { reference, others: vec![member, webhook], ..Image::of(leader, "") };
    // Others may do the same at the same time.
    let archive = fleet.images().join(format!("freeport-{}.tar", std::process::id()));
    image.write(&archive).map_err(Error::file(&archive))?;
    let loaded = fleet.load(std::slice::from_ref(&archive)).await;
    std::fs::remove_file(&archive).map_err(Error::file(&archive))?;
    loaded.map(|()| image.reference)
}

/// What the image of the daemons is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonImage {
    /// As in the Deployments of `manifests/`.
    OfManifests,
    /// By the digests of the programs: a Deployment that names it changes when the daemons change.
    OfContent,
}
