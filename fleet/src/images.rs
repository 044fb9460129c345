//! The images that every node has: built here, since there is no registry.

use std::path::PathBuf;

use crate::{Error, image::Image, layout::Layout, program, tools::Tool};

/// The process that holds a Pod's namespaces.
pub(crate) const PAUSE: &str = "localhost/pause:1";

/// Servers and clients for Pods of tests, see Kubernetes' `test/images/agnhost`: `netexec`, `connect`, `dns-suffix`...
pub fn agnhost() -> String {
    reference(Tool::Agnhost)
}

pub(crate) fn coredns() -> String {
    reference(Tool::Coredns)
}

fn reference(tool: Tool) -> String {
    format!("localhost/{}:{}", tool.name(), tool.version())
}

/// Writes the archives of the images that every node has.
pub(crate) async fn build(
    layout: &Layout,
    program_of: impl Fn(Tool) -> PathBuf,
    progress: &impl Fn(&str),
) -> Result<Vec<PathBuf>, Error> {
    progress("building images");
    let mut images = vec![Image {
        reference: PAUSE.into(),
        ..Image::of(program::static_path("pause", "pause").await?, "1")
    }];
    for tool in [Tool::Coredns, Tool::Agnhost] {
        images.push(Image::of(program_of(tool), tool.version()));
    }
    let dir = layout.images();
    Layout::make_private_dir(&dir).map_err(Error::file(&dir))?;
    let mut archives = Vec::new();
    for image in images {
        let name = image.program.file_name().unwrap_or_default();
        let archive = dir.join(name).with_added_extension("tar");
        image.write(&archive).map_err(Error::file(&image.program))?;
        archives.push(archive);
    }
    Ok(archives)
}
