//! The certificate: read from files, and read again when they change. Connections that are open keep the one they began with.

use std::{fs, io, path::Path, sync::Arc};

use jiff::Timestamp;
use kit::{
    certificate::{self, certified_key, validity},
    index::Shared,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// The certificate, with those between it and its authority.
const CERTIFICATE: &str = "tls.crt";
/// Its key.
const KEY: &str = "tls.key";
/// What a kubelet replaces at once when a mounted Secret changes: files beside it may be of two generations.
const GENERATION: &str = "..data";

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}: {1}")]
    File(&'static str, #[source] io::Error),
    #[error(transparent)]
    Unusable(#[from] certificate::Error),
}

/// What is served. Nothing before the first files that can be used.
#[derive(Default)]
pub(crate) struct Tls(Shared<State>);

#[derive(Default)]
struct State {
    served: Option<Served>,
    /// The files as they were last, unless they could not be read.
    files: Option<[Vec<u8>; 2]>,
    /// Why the files are not what is served.
    problem: Option<String>,
}

struct Served {
    key: Arc<CertifiedKey>,
    expiry: Timestamp,
}

impl Tls {
    /// Serves what is in the folder from now on, if that can be used; otherwise what was served before, or nothing.
    pub(crate) fn read(&self, dir: &Path, now: Timestamp) {
        let files = files(dir);
        self.0.with(|state| {
            let read = match files {
                Ok(files) if state.files.as_ref() == Some(&files) => return,
                Ok(files) => {
                    let served = Served::of(&files);
                    state.files = Some(files);
                    served
                }
                Err(error) => {
                    state.files = None;
                    Err(error)
                }
            };
            match read {
                Ok(served) => {
                    tracing::info!(expires = %served.expiry, "a certificate is served");
                    if served.expiry < now {
                        tracing::warn!(expired = %served.expiry, "the certificate has expired: API servers will not accept it");
                    }
                    (state.served, state.problem) = (Some(served), None);
                }
                Err(error) => state.stay(dir, &error),
            }
        });
    }

    /// When what is served expires.
    pub(crate) fn expiry(&self) -> Option<Timestamp> {
        self.0.with(|state| state.served.as_ref().map(|served| served.expiry))
    }

    /// Why the files cannot be used.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.with(|state| state.problem.clone())
    }

    /// How connections are accepted.
    pub(crate) fn server_config(self: Arc<Self>) -> Result<ServerConfig, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth();
        let mut config = config.with_cert_resolver(self);
        // API servers ask webhooks by nothing newer, so that they spread over several.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl State {
    /// Said once for each problem.
    fn stay(&mut self, dir: &Path, error: &Error) {
        let problem = format!("{}: {error}", dir.display());
        if self.problem.as_ref() != Some(&problem) {
            let goes_on = self.served.is_some();
            tracing::warn!(
                problem,
                goes_on,
                "the certificate cannot be used; one that was served before goes on to be"
            );
        }
        self.problem = Some(problem);
    }
}

impl Served {
    fn of([certificate, key]: &[Vec<u8>; 2]) -> Result<Self, Error> {
        let key = certified_key(certificate, key)?;
        let leaf = key.cert.first().ok_or(certificate::Error::NoCertificate)?;
        let expiry = validity(leaf)?.until;
        Ok(Self { key: Arc::new(key), expiry })
    }
}

fn files(dir: &Path) -> Result<[Vec<u8>; 2], Error> {
    let generation = fs::canonicalize(dir.join(GENERATION)).unwrap_or_else(|_| dir.to_owned());
    let read = |file| fs::read(generation.join(file)).map_err(|error| Error::File(file, error));
    Ok([read(CERTIFICATE)?, read(KEY)?])
}

impl ResolvesServerCert for Tls {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.with(|state| state.served.as_ref().map(|served| served.key.clone()))
    }
}

impl std::fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls({:?})", self.expiry())
    }
}
