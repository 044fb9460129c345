//! Step `dns`: CoreDNS of the importer gives the Service its name. Without a name the address of the import works, so the Service is degraded.

use super::{Looked, scene::Scene};
use crate::dns::Names;

pub(super) fn look(scene: &Scene<'_>) -> Looked {
    let importer = &scene.importer;
    let Some(cluster) = importer.cluster else {
        return Looked::unknown(format!("CoreDNS of {}: not looked at", importer.id));
    };
    match cluster.dns.names() {
        Names::Given => Looked::well(format!("{}: CoreDNS gives imports names", importer.id)),
        Names::Missing(code, what) => {
            Looked::found(scene.broken(code, importer, format!("{}: {what}", importer.id)).degraded())
        }
        Names::Unknown(why) => Looked::unknown(format!("{}: {why}", importer.id)),
    }
}
