//! Certificates of servers, as those look at them who connect.
//!
//! What a certificate says of itself is asked of the code that verifies it, so nothing here decodes one: there is no second opinion.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use rustls::{
    CertificateError, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    sign::CertifiedKey,
};

use crate::failure::{Failure, of_certificate};

/// Characters of a line of PEM.
const LINE: usize = 64;

/// The year 10000: later than any certificate can say.
const NEVER: u64 = 253_402_300_800;

/// Why a certificate or its key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("it has no certificate in PEM")]
    NoCertificate,
    /// It is none that a server can have.
    #[error("it is no certificate of a server: {0}")]
    Malformed(String),
    /// The key is none, or another one's.
    #[error("the key does not belong to the certificate: {0}")]
    Key(String),
}

/// When a certificate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Not before.
    pub from: Timestamp,
    /// Not after.
    pub until: Timestamp,
}

/// All certificates in a PEM text, of which there has to be one.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Malformed(error.to_string()))?;
    if all.is_empty() { Err(Error::NoCertificate) } else { Ok(all) }
}

/// The certificates as one PEM text.
pub fn pem(certificates: &[CertificateDer<'_>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let encoded = BASE64_STANDARD.encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for (place, character) in encoded.char_indices() {
            if place > 0 && place % LINE == 0 {
                text.push('\n');
            }
            text.push(character);
        }
        text.push_str("\n-----END CERTIFICATE-----\n");
    }
    text
}

/// A certificate, with those between it and its authority, and its key, both PEM.
pub fn certified_key(certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, Error> {
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| Error::Key(error.to_string()))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|error| Error::Key(error.to_string()))
}

/// When the certificate counts.
pub fn validity(certificate: &CertificateDer<'_>) -> Result<Validity, Error> {
    let malformed = |error: &dyn std::fmt::Display| Error::Malformed(error.to_string());
    let at = |seconds: u64| -> Result<Option<rustls::Error>, Error> {
        let verifier = verifier(std::slice::from_ref(certificate)).map_err(|failure| malformed(&failure))?;
        // Times are checked before anything else, whatever the name and the authority are.
        let name = ServerName::try_from("localhost").map_err(|error| malformed(&error))?;
        Ok(verifier.verify_server_cert(certificate, &[], &name, &[], unix(seconds)).err())
    };
    let timestamp = |time: &UnixTime| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).map_err(|error| malformed(&error))
    };
    let from = match at(0)? {
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => timestamp(&not_before)?,
        _ => Timestamp::UNIX_EPOCH,
    };
    match at(NEVER)? {
        Some(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Ok(Validity { from, until: timestamp(&not_after)? })
        }
        other => Err(malformed(&other.map_or_else(String::new, |error| error.to_string()))),
    }
}

/// Whether who trusts these authorities alone accepts that chain of the server `name` at that time.
pub fn verify(
    chain: &[CertificateDer<'_>],
    authorities: &[CertificateDer<'_>],
    name: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    let Some((leaf, between)) = chain.split_first() else {
        return Err(Failure::Untrusted("does not exist".into()));
    };
    let name = ServerName::try_from(name).map_err(|_| Failure::Untrusted("is for no name".into()))?;
    let seconds = u64::try_from(at.as_second()).unwrap_or_default();
    match verifier(authorities)?.verify_server_cert(leaf, between, &name, &[], unix(seconds)) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InvalidCertificate(why)) => Err(of_certificate(&why)),
        Err(other) => Err(Failure::Other(other.to_string())),
    }
}

/// Who trusts these authorities alone.
pub(crate) fn verifier(authorities: &[CertificateDer<'_>]) -> Result<Arc<WebPkiServerVerifier>, Failure> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone().into_owned()).map_err(|error| Failure::Untrusted(error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| Failure::Untrusted(format!("cannot be verified: {error}")))
}

fn unix(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    fn params(names: &[&str], years: (i32, i32)) -> CertificateParams {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(years.0, 1, 1), date_time_ymd(years.1, 1, 1));
        params
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn leaves_and_authorities_say_when_they_count() {
        for (names, is_ca) in [(&["a.b.svc"][..], false), (&[], true), (&["a.b.svc"], true)] {
            let mut params = params(names, (2020, 2030));
            if is_ca {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            }
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let want = Validity { from: at("2020-01-01T00:00:00Z"), until: at("2030-01-01T00:00:00Z") };
            assert_eq!(validity(certificate.der()), Ok(want), "{names:?}");
        }
        assert!(matches!(validity(&vec![1, 2, 3].into()), Err(Error::Malformed(_))));
    }

    #[test]
    fn certificates_read_back_from_their_text() {
        let all: Vec<_> = ["a", "b"]
            .map(|name| params(&[name], (2020, 2030)).self_signed(&KeyPair::generate().unwrap()).unwrap())
            .into_iter()
            .map(|certificate| certificate.der().clone())
            .collect();
        let text = pem(&all);
        assert_eq!(certificates(text.as_bytes()), Ok(all));
        assert!(text.lines().all(|line| line.len() <= LINE), "{text}");
    }

    #[test]
    fn a_key_belongs_to_one_certificate() {
        let (ours, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let pem = params(&["a"], (2020, 2030)).self_signed(&ours).unwrap().pem();
        let of =
            |certificate: &str, key: &str| certified_key(certificate.as_bytes(), key.as_bytes()).map(drop);
        assert_eq!(of(&pem, &ours.serialize_pem()), Ok(()));
        assert!(matches!(of(&pem, &other.serialize_pem()), Err(Error::Key(_))));
        assert!(matches!(of(&pem, "no key"), Err(Error::Key(_))));
        assert_eq!(of("", &ours.serialize_pem()), Err(Error::NoCertificate));
        let half = &pem[..pem.len() / 2];
        assert!(of(half, &ours.serialize_pem()).is_err());
    }

    #[test]
    fn trust_depends_on_authority_name_and_time() {
        let key = KeyPair::generate().unwrap();
        let mut authority = params(&[], (2020, 2040));
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = authority.self_signed(&key).unwrap();
        let issuer = rcgen::Issuer::new(authority, key);
        let leaf_key = KeyPair::generate().unwrap();
        let leaf = params(&["a.b.svc"], (2020, 2030)).signed_by(&leaf_key, &issuer).unwrap();
        let other = params(&["a.b.svc"], (2020, 2030)).self_signed(&leaf_key).unwrap();
        let ask = |chain: &rcgen::Certificate, name, time| {
            verify(&[chain.der().clone()], &[ca.der().clone()], name, at(time))
        };
        assert_eq!(ask(&leaf, "a.b.svc", "2025-01-01T00:00:00Z"), Ok(()));
        assert!(matches!(ask(&leaf, "c.b.svc", "2025-01-01T00:00:00Z"), Err(Failure::Untrusted(_))));
        assert!(matches!(ask(&leaf, "a.b.svc", "2031-01-01T00:00:00Z"), Err(Failure::Expired(_))));
        assert!(matches!(ask(&other, "a.b.svc", "2025-01-01T00:00:00Z"), Err(Failure::Untrusted(_))));
        assert!(verify(&[leaf.der().clone()], &[], "a.b.svc", at("2025-01-01T00:00:00Z")).is_err());
    }
}
