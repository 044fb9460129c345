//! Makes certificates: authorities, and leaves of them for the webhook. Pure but for signatures; keys come in.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kit::certificate::{self, Validity, certificates, certified_key, validity, verify};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls::pki_types::CertificateDer;

/// The same for all authorities, so that who has the key of one needs not read its certificate to sign. Their keys tell them apart.
const AUTHORITY: &str = "freeport-webhook CA";

/// Clocks of API servers may be behind ours: a certificate counts from a tenth of its lifetime ago, but from no longer ago than this.
const BEHIND_MAX: SignedDuration = SignedDuration::from_hours(1);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// It cannot be read again.
    #[error("cannot read the certificate that was made: {0}")]
    Read(#[from] certificate::Error),
}

/// A certificate, as text and decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    /// As it is written.
    pub(super) pem: String,
    /// As it is verified.
    pub(super) der: CertificateDer<'static>,
    /// When it counts.
    pub(super) validity: Validity,
}

impl Certificate {
    /// The one that the text has.
    pub(super) fn read(pem: &str) -> Result<Self, certificate::Error> {
        let der = certificates(pem.as_bytes())?.swap_remove(0);
        Ok(Self { pem: pem.to_owned(), validity: validity(&der)?, der })
    }

    /// All that the text has; none where one of them cannot be read.
    pub(super) fn read_all(pem: &str) -> Result<Vec<Self>, certificate::Error> {
        const END: &str = "-----END CERTIFICATE-----";
        let texts = pem.split_inclusive(END).filter(|text| text.ends_with(END));
        texts.map(|text| Self::read(&format!("{}\n", text.trim_start()))).collect()
    }

    /// Whether it counts.
    pub(super) fn counts(&self, now: Timestamp) -> bool {
        self.validity.from <= now && now < self.validity.until
    }

    /// For how much longer it counts.
    pub(super) fn remaining(&self, now: Timestamp) -> SignedDuration {
        self.validity.until.duration_since(now)
    }

    /// Whether who trusts these authorities alone accepts it under all these names.
    pub(super) fn is_accepted(&self, by: &[Self], names: &[String], now: Timestamp) -> bool {
        let by: Vec<_> = by.iter().map(|authority| authority.der.clone()).collect();
        names.iter().all(|name| verify(std::slice::from_ref(&self.der), &by, name, now).is_ok())
    }
}

/// A new authority with this key.
pub(super) fn authority(key: &KeyPair, now: Timestamp, lifetime: Duration) -> Result<Certificate, Error> {
    let mut params = authority_params();
    set_validity(&mut params, from(now, lifetime), after(now, lifetime));
    Ok(Certificate::read(&params.self_signed(key)?.pem())?)
}

/// A certificate for a server of these names and the public key `of`, by an authority and its key. It does not outlive the authority.
pub(super) fn leaf(
    (authority, key): (&Certificate, &KeyPair),
    of: &impl PublicKeyData,
    names: &[String],
    now: Timestamp,
    lifetime: Duration,
) -> Result<Certificate, Error> {
    let mut params = CertificateParams::new(names)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "freeport-webhook");
    params.distinguished_name = subject;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let Validity { from: no_sooner, until: no_later } = authority.validity;
    set_validity(&mut params, from(now, lifetime).max(no_sooner), after(now, lifetime).min(no_later));
    let made = params.signed_by(of, &Issuer::new(authority_params(), key))?;
    Ok(Certificate::read(&made.pem())?)
}

/// Whether the key is the authority's, and signs what who trusts the authority accepts.
pub(super) fn can_issue(authority: &Certificate, key: &KeyPair, now: Timestamp) -> bool {
    let name = "trial.invalid".to_owned();
    let trial = leaf((authority, key), key, std::slice::from_ref(&name), now, Duration::from_secs(3600));
    trial.is_ok_and(|trial| trial.is_accepted(std::slice::from_ref(authority), &[name], now))
}

/// Whether the key is that of the certificate.
pub(super) fn belongs(certificate: &Certificate, key: &str) -> bool {
    certified_key(certificate.pem.as_bytes(), key.as_bytes()).is_ok()
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, AUTHORITY);
    params.distinguished_name = subject;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn from(now: Timestamp, lifetime: Duration) -> Timestamp {
    let tenth = SignedDuration::try_from(lifetime / 10).unwrap_or(BEHIND_MAX);
    now.checked_sub(tenth.min(BEHIND_MAX)).unwrap_or(now)
}

fn after(now: Timestamp, lifetime: Duration) -> Timestamp {
    now.checked_add(lifetime).unwrap_or(Timestamp::MAX)
}

/// Sets when it counts, to the second, which is what a certificate can say.
fn set_validity(params: &mut CertificateParams, from: Timestamp, until: Timestamp) {
    let date = |time: Timestamp| {
        date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
    };
    (params.not_before, params.not_after) = (date(from), date(until));
}
