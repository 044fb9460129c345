//! The files of `manifests/`: what `freeport` applies, for people who apply it themselves.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::objects::{DEFAULT_IMAGE, Object, access, area, bind, crds, leader, member, offload};

/// One file: name, what it is for, and its objects in an order that `kubectl apply -f` accepts.
struct Manifest {
    file: &'static str,
    about: &'static str,
    objects: Vec<Object>,
}

/// Why a file could not be made or compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object has no YAML form.
    #[error("{0}: {1}")]
    Yaml(&'static str, #[source] serde_yaml::Error),
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Files that differ from what the code says, with `--check`.
    #[error("out of date: {}; run `cargo run -p cli --bin manifests`", .0.join(", "))]
    Differ(Vec<String>),
}

/// Name and content of every file.
pub fn files() -> Result<Vec<(&'static str, String)>, Error> {
    all()
        .into_iter()
        .map(|manifest| {
            let text = text(&manifest).map_err(|error| Error::Yaml(manifest.file, error))?;
            Ok((manifest.file, text))
        })
        .collect()
}

/// Writes the files into `dir`.
pub fn write(dir: &Path) -> Result<(), Error> {
    for (file, text) in files()? {
        let path = dir.join(file);
        std::fs::write(&path, text).map_err(|source| Error::File { path, source })?;
    }
    Ok(())
}

/// Compares `dir` with what [`write`] would leave: [`Error::Differ`] names files that are missing, stale or superfluous.
pub fn check(dir: &Path) -> Result<(), Error> {
    let files = files()?;
    let mut differ: Vec<String> = files
        .iter()
        .filter(|(file, text)| std::fs::read_to_string(dir.join(file)).ok().as_ref() != Some(text))
        .map(|(file, _)| (*file).to_owned())
        .collect();
    let failed = |source| Error::File { path: dir.into(), source };
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if files.iter().all(|(file, _)| *file != name) {
            differ.push(name);
        }
    }
    if differ.is_empty() { Ok(()) } else { Err(Error::Differ(differ)) }
}

fn all() -> Vec<Manifest> {
    vec![
        Manifest {
            file: "crds-leader.yaml",
            about: "CustomResourceDefinitions of a cluster that leads a ClusterSet.",
            objects: crds::leader(),
        },
        Manifest {
            file: "crds-member.yaml",
            about: "CustomResourceDefinitions of a cluster that is a member of a ClusterSet.",
            objects: crds::member(),
        },
        Manifest {
            file: "leader.yaml",
            about: "The leader: once in its cluster, whatever the number of ClusterSets it leads.",
            objects: [leader::objects(), leader::workload(DEFAULT_IMAGE, 1, &[])].concat(),
        },
        Manifest {
            file: "common-area.yaml",
            about: "Example, in the leader's cluster: the Common Area of ClusterSet \"demo\", led by cluster \"leader\".",
            objects: area::objects("demo", "leader"),
        },
        Manifest {
            file: "join.yaml",
            about: "Example, in the leader's cluster: access of member \"east\" to the Common Area of ClusterSet \"demo\". To bound the addresses of its endpoints,\n\
                    # annotate its ServiceAccount with multicluster.freeport.dev/address-ranges: 10.1.0.0/16,...",
            objects: access::objects("demo", "east", None),
        },
        Manifest {
            file: "join-antrea.yaml",
            about: "Example, in the leader's cluster: access of member \"north\", which runs Antrea's controllers, to the Common Area of \
                    ClusterSet \"demo\".",
            objects: access::antrea_objects("demo", "north"),
        },
        Manifest {
            file: "member.yaml",
            about: "The member, in its own cluster. It also needs the Secret and ClusterSet of clusterset-member.yaml.",
            objects: [member::objects(), member::workload(DEFAULT_IMAGE, 1, false, &[])].concat(),
        },
        Manifest {
            file: "clusterset-member.yaml",
            about: "Example, in the member's cluster: ClusterSet \"demo\", to which it belongs as \"east\", and the empty Secret for its \
                    credential, with\n# the right to replace that. Put the address of the leader's API server for LEADER.",
            objects: [
                member::credential("demo"),
                vec![member::cluster_set("demo", "east", "leader", "https://LEADER:6443")],
            ]
            .concat(),
        },
        Manifest {
            file: "offload-leader.yaml",
            about: "For offloading, in the leader's cluster: CustomResourceDefinitions of its records.",
            objects: offload::leader_crds(),
        },
        Manifest {
            file: "offload.yaml",
            about: "For offloading, in a member's cluster, after member.yaml: CustomResourceDefinitions, rights, policies, and the webhook that \
                    places\n# Pods. The member takes part with FREEPORT_OFFLOAD=true in its environment.",
            objects: offload::all(DEFAULT_IMAGE),
        },
        Manifest {
            file: "bind-provider.yaml",
            about: "For API binding, in a provider's cluster, after crds-leader.yaml and leader.yaml: CustomResourceDefinitions and rights. The leader\n\
                    # provides with FREEPORT_BIND=true and FREEPORT_BIND_ADDRESS=https://HOST:PORT in its environment. What an API needs that is\n\
                    # offered, `freeport bind offer --dry-run` prints.",
            objects: [bind::provider_crds(), bind::provider()].concat(),
        },
        Manifest {
            file: "bind-consumer.yaml",
            about: "For API binding, in a consumer's cluster, after crds-member.yaml and member.yaml: CustomResourceDefinitions and rights. The member\n\
                    # takes part with FREEPORT_BIND=true in its environment. What an API needs that is bound, `freeport bind apiservice --dry-run`\n\
                    # prints.",
            objects: [bind::consumer_crds(), bind::consumer()].concat(),
        },
    ]
}

fn text(manifest: &Manifest) -> Result<String, serde_yaml::Error> {
    let mut text =
        format!("# {}\n# Generated by `cargo run -p cli --bin manifests`; do not edit.\n", manifest.about);
    for object in &manifest.objects {
        text.push_str("---\n");
        text.push_str(&object.yaml()?);
    }
    Ok(text)
}
