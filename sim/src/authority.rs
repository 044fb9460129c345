//! The authority of all API servers. Nobody checks a certificate here, but credentials must have one.

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

/// Its certificate, PEM.
pub(crate) fn certificate() -> String {
    let signed = KeyPair::generate().and_then(|key| {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.self_signed(&key)
    });
    match signed {
        Ok(certificate) => certificate.pem(),
        Err(error) => panic!("cannot sign a certificate: {error}"),
    }
}
