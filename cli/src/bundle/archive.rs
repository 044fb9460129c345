//! The file: a tar archive, compressed by gzip, whose checksum tells a file that was cut short.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::Path,
};

use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use k8s_openapi::jiff::Timestamp;
use tar::{Archive, Builder, Header};

use super::{Files, MANIFEST};

/// End of the message about a file that is no bundle.
pub(super) const NO_BUNDLE: &str = "it is no bundle. try: a file that freeport gather wrote";

/// End of the message about a bundle that is not whole.
pub(super) const CUT_SHORT: &str = "it was cut short. try: copy it again, or run freeport gather again";

/// Largest content of a bundle that is read, in bytes.
const MAX: u64 = 2 << 30;

/// Folder that everything is in when the file is unpacked.
const FOLDER: &str = "freeport-bundle/";

/// Writes the files, the one about the bundle first.
pub(crate) fn write(to: &mut impl Write, files: &Files, at: Timestamp) -> io::Result<()> {
    let mut archive = Builder::new(GzEncoder::new(BufWriter::new(to), Compression::default()));
    let first = files.get_key_value(MANIFEST);
    let others = files.iter().filter(|(path, _)| path.as_str() != MANIFEST);
    for (path, content) in first.into_iter().chain(others) {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(at.as_second().try_into().unwrap_or_default());
        archive.append_data(&mut header, format!("{FOLDER}{path}"), content.as_slice())?;
    }
    archive.into_inner()?.finish()?.flush()
}

/// Reads all files. An error is the end of a sentence about the file, and what to try.
pub(super) fn read(path: &Path) -> Result<Files, String> {
    let unreadable =
        |error: io::Error| format!("{error}. try: the path of a file that freeport gather wrote");
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    files(&mut file).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CUT_SHORT.to_owned(),
        _ => format!("{error}: {NO_BUNDLE}"),
    })
}

fn files(file: &mut BufReader<File>) -> io::Result<Files> {
    let mut archive = Archive::new(GzDecoder::new(file).take(MAX));
    let mut files = Files::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if let Some(path) = path.strip_prefix(FOLDER).filter(|_| entry.header().entry_type().is_file()) {
            files.insert(path.to_owned(), content);
        }
    }
    // The checksum is behind the end of the archive.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(files)
}
