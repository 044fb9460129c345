//! What only one cluster can read, though every member reads the Common Area: HPKE (RFC 9180) with X25519, HKDF-SHA256 and
//! ChaCha20-Poly1305.
//!
//! HPKE draws a new key for each text, so the same content would be another text each time, and a reconcile could not tell whether a record
//! says what it should. So that key is drawn from the content and the writer's own private key: the same arguments give the same text,
//! and without the private key nobody can try out contents.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_STANDARD};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use hpke::{
    Deserializable, Kem as _, OpModeR, OpModeS, Serializable, aead::ChaCha20Poly1305, kdf::HkdfSha256,
    kem::X25519HkdfSha256, single_shot_open, single_shot_seal_with_rng,
};
use sha2::{Digest, Sha256};

use super::shadow_pod::SEALED_MAX;

type Kem = X25519HkdfSha256;

/// Bytes of a key, private or public.
pub const KEY_LENGTH: usize = 32;

/// Says in each sealed text what it is for, so that none counts anywhere else.
const PURPOSE: &[u8] = b"freeport ShadowPod v1alpha1";

/// A private key, which nobody prints.
#[derive(Clone)]
pub struct PrivateKey(<Kem as hpke::Kem>::PrivateKey);

impl PrivateKey {
    /// Of random bytes. None of a wrong number of them.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        <Kem as hpke::Kem>::PrivateKey::from_bytes(bytes).ok().map(Self)
    }

    /// As it is kept.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.to_bytes().to_vec()
    }

    /// What others seal with.
    pub fn public(&self) -> PublicKey {
        PublicKey(Kem::sk_to_pk(&self.0))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

/// A public key. As text it is base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(<Kem as hpke::Kem>::PublicKey);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_STANDARD.encode(self.0.to_bytes()))
    }
}

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| NotAKey)?;
        <Kem as hpke::Kem>::PublicKey::from_bytes(&bytes).map(Self).map_err(|_| NotAKey)
    }
}

/// The text is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the public key is not {KEY_LENGTH} bytes of X25519 in base64")]
pub struct NotAKey;

/// Why nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotSeal {
    /// It would not fit the record.
    #[error("sealed it has {0} characters, and at most {SEALED_MAX} travel")]
    TooLong(usize),
    /// The key looks like one, and nothing can be sealed with it.
    #[error("the public key of the destination is weak")]
    WeakKey,
}

/// Seals `content` with the public key of who shall read it. It opens only as what it is `about`. `from` is the private key of the
/// writer; the same arguments give the same text.
///
/// # Errors
/// [`CannotSeal`].
pub fn seal(content: &[u8], about: &str, to: &PublicKey, from: &PrivateKey) -> Result<String, CannotSeal> {
    let mut random = ChaCha20Rng::from_seed(seed(content, about, to, from));
    let (key, text) = single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, Kem>(
        &OpModeS::Base,
        &to.0,
        PURPOSE,
        content,
        about.as_bytes(),
        &mut random,
    )
    .map_err(|_| CannotSeal::WeakKey)?;
    let sealed = BASE64_STANDARD.encode([key.to_bytes().as_slice(), &text].concat());
    if sealed.len() > SEALED_MAX { Err(CannotSeal::TooLong(sealed.len())) } else { Ok(sealed) }
}

/// Characters of [`seal`]'s text where the content has so many bytes.
pub fn sealed_length(content: usize) -> usize {
    /// Bytes by which the cipher tells what was changed.
    const TAG: usize = 16;
    (KEY_LENGTH + content + TAG).div_ceil(3) * 4
}

/// Each part with its length, so that no two lists of parts are the same bytes.
fn seed(content: &[u8], about: &str, to: &PublicKey, from: &PrivateKey) -> [u8; KEY_LENGTH] {
    let (to, from) = (to.0.to_bytes(), from.0.to_bytes());
    let parts = [PURPOSE, from.as_slice(), to.as_slice(), about.as_bytes(), content];
    let hash = parts.into_iter().fold(Sha256::new(), |hash, part| {
        hash.chain_update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes()).chain_update(part)
    });
    hash.finalize().into()
}

/// The text was not sealed for this key, or is about something else, or is garbled: they cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was not sealed with our public key for this record")]
pub struct CannotOpen;

/// What was sealed by [`seal`] for this key and about this.
///
/// # Errors
/// [`CannotOpen`].
pub fn open(sealed: &str, about: &str, key: &PrivateKey) -> Result<Vec<u8>, CannotOpen> {
    let bytes = BASE64_STANDARD.decode(sealed).map_err(|_| CannotOpen)?;
    let (encapsulated, text) = bytes.split_at_checked(KEY_LENGTH).ok_or(CannotOpen)?;
    let encapsulated = <Kem as hpke::Kem>::EncappedKey::from_bytes(encapsulated).map_err(|_| CannotOpen)?;
    single_shot_open::<ChaCha20Poly1305, HkdfSha256, Kem>(
        &OpModeR::Base,
        &key.0,
        &encapsulated,
        PURPOSE,
        text,
        about.as_bytes(),
    )
    .map_err(|_| CannotOpen)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(n: u8) -> PrivateKey {
        PrivateKey::read(&[n; KEY_LENGTH]).unwrap()
    }

    #[test]
    fn only_the_destination_opens_it_and_only_as_what_it_is() {
        let (west, east, other) = (key(1), key(2), key(3));
        let seal = |about: &str, to: &PrivateKey| seal(b"secret", about, &to.public(), &west).unwrap();
        let sealed = seal("web", &east);
        assert_eq!(open(&sealed, "web", &east).unwrap(), b"secret");
        assert_eq!(open(&sealed, "db", &east), Err(CannotOpen));
        assert_eq!(open(&sealed, "web", &other), Err(CannotOpen));
        assert_eq!(open(&sealed, "web", &west), Err(CannotOpen), "nor the writer");
        for garbled in ["", "?", "AAAA", &sealed[4..], &sealed.replacen('A', "B", 1).replacen('e', "f", 1)] {
            assert_eq!(open(garbled, "web", &east), Err(CannotOpen), "{garbled}");
        }
        assert_eq!(sealed, seal("web", &east), "the same again, so that nothing is written");
        assert!(sealed != seal("db", &east) && sealed != seal("web", &other));
        assert!(!format!("{west:?}").contains('1'));
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let public = key(7).public();
        assert_eq!(public.to_string().parse(), Ok(public));
        assert_eq!(PrivateKey::read(&key(7).bytes()).unwrap().public(), key(7).public());
        assert!(PrivateKey::read(&[1; 31]).is_none() && PrivateKey::read(&[]).is_none());
        for not in ["", "west", "AAAA"] {
            assert_eq!(not.parse::<PublicKey>(), Err(NotAKey), "{not}");
        }
        let weak = BASE64_STANDARD.encode([0; KEY_LENGTH]);
        assert!(
            weak.parse::<PublicKey>().is_err() || seal(b"", "", &weak.parse().unwrap(), &key(1)).is_err()
        );
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let long = vec![0; SEALED_MAX];
        assert!(matches!(seal(&long, "", &key(2).public(), &key(1)), Err(CannotSeal::TooLong(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_was_sealed_opens(content in prop::collection::vec(any::<u8>(), 0..2000), about in ".{0,40}") {
            let sealed = seal(&content, &about, &key(2).public(), &key(1)).unwrap();
            prop_assert_eq!(sealed.len(), sealed_length(content.len()));
            prop_assert_eq!(open(&sealed, &about, &key(2)).unwrap(), content);
        }
    }
}
