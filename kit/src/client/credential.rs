//! What authenticates us at a server and the server to us. It can be replaced while connections stand: each request has the token of its
//! time, and each new connection is judged by the authorities of its time.

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::{HeaderValue, Request, header::AUTHORIZATION};
use k8s_openapi::ByteString;
use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use super::{CA, Error, TOKEN};
use crate::{
    certificate::{certificates, verifier},
    index::Shared,
};

/// A token and authorities. Cloning shares them.
#[derive(Clone)]
pub struct Credential(Shared<Parts>);

struct Parts {
    /// Header `Authorization`.
    token: HeaderValue,
    authorities: Arc<WebPkiServerVerifier>,
}

/// Shows nothing of the content.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

impl Credential {
    /// That of a Secret.
    ///
    /// Whoever may write the Secret must not gain more than a connection: it holds a CA and a token, never a kubeconfig, so
    /// nothing in it can run a program, read a file, or switch off verification.
    ///
    /// # Errors
    /// [`Error::Missing`] and [`Error::Malformed`].
    pub fn read(secret: &BTreeMap<String, ByteString>) -> Result<Self, Error> {
        Ok(Self(Shared::new(parts(secret)?)))
    }

    /// From now on it is that of this Secret.
    ///
    /// # Errors
    /// As for [`read`](Self::read); then it stays as it is.
    pub fn replace(&self, secret: &BTreeMap<String, ByteString>) -> Result<(), Error> {
        let new = parts(secret)?;
        self.0.with(|parts| *parts = new);
        Ok(())
    }

    /// The request, with the token.
    pub(super) fn sign<B>(&self, mut request: Request<B>) -> Request<B> {
        let token = self.0.with(|parts| parts.token.clone());
        request.headers_mut().insert(AUTHORIZATION, token);
        request
    }

    fn authorities(&self) -> Arc<WebPkiServerVerifier> {
        self.0.with(|parts| parts.authorities.clone())
    }
}

impl ServerCertVerifier for Credential {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.authorities().verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities().supported_verify_schemes()
    }
}

fn parts(secret: &BTreeMap<String, ByteString>) -> Result<Parts, Error> {
    let pem = secret.get(CA).ok_or(Error::Missing(CA))?;
    let authorities = certificates(&pem.0).ok().and_then(|all| verifier(&all).ok());
    let authorities = authorities.ok_or(Error::Malformed(CA, "a PEM certificate"))?;
    Ok(Parts { token: token(secret)?, authorities })
}

fn token(secret: &BTreeMap<String, ByteString>) -> Result<HeaderValue, Error> {
    let malformed = Error::Malformed(TOKEN, "a bearer token");
    let bytes = secret.get(TOKEN).ok_or(Error::Missing(TOKEN))?;
    let text = std::str::from_utf8(&bytes.0).unwrap_or_default().trim();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(malformed);
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {text}")).map_err(|_| malformed)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    use super::*;

    /// An authority: its certificate in PEM, and a certificate of the server `leader` that it signed.
    fn authority() -> (String, CertificateDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let leaf = CertificateParams::new(vec!["leader".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        (ca.pem(), leaf.der().clone())
    }

    fn secret(entries: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
        entries.iter().map(|(k, v)| ((*k).to_owned(), ByteString(v.as_bytes().to_vec()))).collect()
    }

    #[test]
    fn a_secret_is_a_ca_and_a_token_and_nothing_else() {
        let read = |entries: &[(&str, &str)]| Credential::read(&secret(entries)).map(drop);
        let (ca, _) = authority();
        assert!(matches!(read(&[(TOKEN, "t")]), Err(Error::Missing(CA))));
        assert!(matches!(read(&[(CA, "x"), (TOKEN, "t")]), Err(Error::Malformed(CA, _))));
        let kubeconfig = [("kubeconfig", "users: [{user: {exec: {command: /bin/sh}}}]")];
        assert!(matches!(read(&kubeconfig), Err(Error::Missing(_))), "never looked at");
        assert!(matches!(read(&[(CA, &ca), (TOKEN, "a\nX-Evil: b")]), Err(Error::Malformed(TOKEN, _))));
        assert!(read(&[(CA, &ca), (TOKEN, "abc.def\n")]).is_ok());
    }

    #[test]
    fn each_request_and_each_connection_has_what_is_the_credential_then() {
        let ((old, of_old), (new, of_new)) = (authority(), authority());
        let credential = Credential::read(&secret(&[(CA, &old), (TOKEN, "one")])).unwrap();
        let token = || {
            let signed = credential.sign(Request::new(()));
            let header = signed.headers()[AUTHORIZATION].clone();
            assert!(header.is_sensitive());
            header.to_str().unwrap().to_owned()
        };
        let trusts = |leaf: &CertificateDer<'_>| {
            let name = ServerName::try_from("leader").unwrap();
            credential.verify_server_cert(leaf, &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert_eq!((token().as_str(), trusts(&of_old), trusts(&of_new)), ("Bearer one", true, false));
        credential.replace(&secret(&[(CA, &format!("{old}{new}")), (TOKEN, "two")])).unwrap();
        assert_eq!((token().as_str(), trusts(&of_old), trusts(&of_new)), ("Bearer two", true, true));
        assert!(credential.replace(&secret(&[(TOKEN, "three")])).is_err());
        assert_eq!((token().as_str(), trusts(&of_old)), ("Bearer two", true), "it stays as it is");
        assert!(!format!("{credential:?}").contains("two"), "a token in a log");
    }
}
