//! What the Secret holds: the authorities that are trusted, the key of the one that issues, and the leaf that is served. Pure.
//!
//! The webhook needs the leaf and its key alone; the key of the authority is for us.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::issue::{Certificate, belongs};

/// Key of the Secret: all authorities that are to be trusted, the one that issues first.
pub(super) const AUTHORITIES: &str = "ca.crt";
/// Key of the Secret: the key of the first authority.
const AUTHORITY_KEY: &str = "ca.key";
/// Key of the Secret: for each other authority a line with the time at which its last leaf has expired.
const RETIRING: &str = "ca.retiring";
/// Key of the Secret: the leaf.
const LEAF: &str = "tls.crt";
/// Key of the Secret: the key of the leaf.
const LEAF_KEY: &str = "tls.key";

/// What the Secret holds. What of it is lost or garbled is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// Who issues, and its key, PEM.
    pub(super) issuer: Option<(Certificate, Key)>,
    /// Who issued before, and when the last of its leaves has expired, as far as that is known.
    pub(super) retiring: Vec<(Certificate, Option<Timestamp>)>,
    /// What is served, and its key.
    pub(super) leaf: Option<(Certificate, Key)>,
}

/// Something that an operator may want to know.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct News {
    /// One CamelCase word.
    pub(super) reason: &'static str,
    /// A sentence.
    pub(super) message: String,
}

/// A private key, PEM, which nobody prints.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(pub(super) String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Stored {
    /// As it is written.
    pub(super) fn read(data: &BTreeMap<String, ByteString>) -> Self {
        let text = |key: &str| std::str::from_utf8(&data.get(key)?.0).ok();
        let authorities =
            text(AUTHORITIES).and_then(|pem| Certificate::read_all(pem).ok()).unwrap_or_default();
        let mut authorities = authorities.into_iter();
        let (first, key) = (authorities.next(), text(AUTHORITY_KEY).map(|key| Key(key.to_owned())));
        let times = text(RETIRING).unwrap_or_default().lines().map(|line| line.parse().ok());
        let others = authorities.zip(times.chain(std::iter::repeat(None)));
        // Who has lost its key issues no more.
        let (issuer, retiring) = match (first, key) {
            (Some(first), Some(key)) => (Some((first, key)), others.collect()),
            (first, _) => (None, first.map(|first| (first, None)).into_iter().chain(others).collect()),
        };
        let leaf = text(LEAF).and_then(|pem| Certificate::read(pem).ok());
        let leaf = leaf.zip(text(LEAF_KEY)).filter(|(leaf, key)| belongs(leaf, key));
        Self { issuer, retiring, leaf: leaf.map(|(leaf, key)| (leaf, Key(key.to_owned()))) }
    }

    /// What is there now that was not there before, and who is trusted no more.
    pub(super) fn news(&self, before: &Self) -> Vec<News> {
        let issuer = |stored: &Self| stored.issuer.as_ref().map(|(issuer, _)| issuer.clone());
        let leaf = |stored: &Self| stored.leaf.as_ref().map(|(leaf, _)| leaf.clone());
        let is_new = |now: &Certificate, before: Option<Certificate>| before.is_none_or(|b| b.der != now.der);
        let mut news = Vec::new();
        if let Some(now) = issuer(self).filter(|now| is_new(now, issuer(before))) {
            let message = format!("a new authority issues until {}", now.validity.until);
            news.push(News { reason: "AuthorityIssued", message });
        }
        if let Some(now) = leaf(self).filter(|now| is_new(now, leaf(before))) {
            let message =
                format!("the webhook has a new certificate, which counts until {}", now.validity.until);
            news.push(News { reason: "CertificateIssued", message });
        }
        let is_trusted = |gone: &&Certificate| self.authorities().any(|authority| authority.der == gone.der);
        let retired = before.authorities().filter(|authority| !is_trusted(authority)).count();
        if retired > 0 {
            let message = format!("{retired} trusted no more: the last certificate from there has expired");
            news.push(News { reason: "AuthorityRetired", message });
        }
        news
    }

    /// As it is to be written.
    pub(super) fn write(&self) -> BTreeMap<String, ByteString> {
        let times: String = self
            .retiring
            .iter()
            .map(|(_, at)| at.map_or_else(String::new, |at| at.to_string()) + "\n")
            .collect();
        let mut data = vec![(AUTHORITIES, self.bundle()), (RETIRING, times)];
        if let Some((_, Key(key))) = &self.issuer {
            data.push((AUTHORITY_KEY, key.clone()));
        }
        if let Some((leaf, Key(key))) = &self.leaf {
            data.extend([(LEAF, leaf.pem.clone()), (LEAF_KEY, key.clone())]);
        }
        data.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).collect()
    }

    /// Everybody who is to be trusted, the one that issues first.
    pub(super) fn authorities(&self) -> impl Iterator<Item = &Certificate> {
        let issuer = self.issuer.iter().map(|(issuer, _)| issuer);
        issuer.chain(self.retiring.iter().map(|(authority, _)| authority))
    }

    /// [`authorities`](Self::authorities) as PEM.
    pub(super) fn bundle(&self) -> String {
        self.authorities().map(|authority| authority.pem.as_str()).collect()
    }
}
