//! Which authorities are trusted at the leader when its cluster has others. Pure.
//!
//! The leader's cluster publishes its authorities in a ConfigMap of each Namespace. While they are replaced it names the old and the new
//! together. The certificate that we see may be of neither: of a load balancer or of a proxy, with an authority that somebody put into the
//! Secret. So what the cluster names is added, and only what it named before is taken away again. That is noted for each that it names, also
//! where the Secret has it already: who joined while both were named would trust the old one for ever.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use kit::{
    certificate::{certificates, pem},
    client::{CA, NAMED_CA},
};
use rustls::pki_types::CertificateDer;

type Data = BTreeMap<String, ByteString>;

/// What the Secret may hold instead of `data`, what is wanted most first; nothing where it stays. The cluster names `named`, PEM. Each is to
/// be proven by a connection before it is written.
pub(super) fn candidates(data: &Data, named: &str) -> Vec<Data> {
    let read = |key: &str| data.get(key).and_then(|pem| certificates(&pem.0).ok()).unwrap_or_default();
    let (have, before) = (read(CA), read(NAMED_CA));
    let Ok(now) = certificates(named.as_bytes()) else { return Vec::new() };
    let is_noted = now.iter().all(|one| before.contains(one));
    if have.is_empty()
        || is_noted && now.iter().all(|one| have.contains(one)) && before.iter().all(|one| now.contains(one))
    {
        return Vec::new();
    }
    let kept: Vec<_> =
        have.iter().filter(|one| now.contains(one) || !before.contains(one)).cloned().collect();
    let mut candidates = vec![united(kept, &now), united(have.clone(), &now)];
    candidates.retain(|candidate| *candidate != have || !is_noted);
    candidates.dedup();
    let ever = united(before, &now);
    candidates.iter().map(|authorities| with(data, authorities, &ever)).collect()
}

fn united<'a>(mut all: Vec<CertificateDer<'a>>, more: &[CertificateDer<'a>]) -> Vec<CertificateDer<'a>> {
    for one in more {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
    all
}

fn with(data: &Data, authorities: &[CertificateDer<'_>], ever_named: &[CertificateDer<'_>]) -> Data {
    let text = |authorities: &[CertificateDer<'_>]| ByteString(pem(authorities).into_bytes());
    let named: Vec<_> = authorities.iter().filter(|one| ever_named.contains(one)).cloned().collect();
    let mut data = data.clone();
    data.insert(CA.to_owned(), text(authorities));
    data.insert(NAMED_CA.to_owned(), text(&named));
    data
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// Some certificates, each with its PEM.
    fn some<const N: usize>() -> [String; N] {
        std::array::from_fn(|_| {
            let params = CertificateParams::new(Vec::<String>::new()).unwrap();
            params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
        })
    }

    fn secret(authorities: &[&String], named: &[&String]) -> Data {
        let text =
            |all: &[&String]| ByteString(all.iter().map(|pem| pem.as_str()).collect::<String>().into_bytes());
        let mut data: Data =
            [(CA.to_owned(), text(authorities)), ("token".to_owned(), ByteString(b"t".into()))].into();
        if !named.is_empty() {
            data.insert(NAMED_CA.to_owned(), text(named));
        }
        data
    }

    /// Which authorities are in each candidate, by their place in `all`.
    fn places(candidates: &[Data], all: &[&String]) -> Vec<Vec<usize>> {
        let all: Vec<_> = all.iter().map(|pem| certificates(pem.as_bytes()).unwrap().remove(0)).collect();
        let of = |data: &Data| {
            let trusted = certificates(&data[CA].0).unwrap();
            assert_eq!(data["token"].0, b"t", "the token stays");
            trusted.iter().map(|one| all.iter().position(|known| known == one).unwrap()).collect()
        };
        candidates.iter().map(of).collect()
    }

    #[test]
    fn old_and_new_are_trusted_together_until_the_cluster_names_the_new_alone() {
        let [old, new] = some();
        let all = [&old, &new];
        let begun = secret(&[&old], &[&old]);
        assert!(candidates(&begun, &old).is_empty(), "nothing is written");
        let both = candidates(&begun, &format!("{old}{new}"));
        assert_eq!(places(&both, &all), [[0, 1]]);
        assert!(candidates(&both[0], &format!("{new}{old}")).is_empty(), "nothing is written twice");
        let ended = candidates(&both[0], &new);
        assert_eq!(places(&ended, &all), [[1]], "if that is not proven, it stays");
        assert!(candidates(&ended[0], &new).is_empty());
    }

    #[test]
    fn who_joins_while_both_are_named_gives_up_the_old_one_too() {
        let [old, new] = some();
        let (all, both) = ([&old, &new], format!("{old}{new}"));
        let noted = candidates(&secret(&[&old, &new], &[]), &both);
        assert_eq!(places(&noted, &all), [[0, 1]], "what is trusted stays, and is noted");
        assert!(candidates(&noted[0], &both).is_empty(), "once");
        assert_eq!(places(&candidates(&noted[0], &new), &all), [[1]]);
    }

    #[test]
    fn what_somebody_put_there_and_the_cluster_never_named_stays() {
        let [public, old, new] = some();
        let all = [&public, &old, &new];
        let begun = candidates(&secret(&[&public], &[]), &old);
        assert_eq!(places(&begun, &all), [[0, 1]]);
        let changed = candidates(&begun[0], &new);
        assert_eq!(
            places(&changed, &all),
            [vec![0, 2], vec![0, 1, 2]],
            "the second if the first is not proven"
        );
        assert!(candidates(&changed[1], &new).len() == 1, "what is not needed any more is tried again");
    }

    #[test]
    fn what_is_no_certificate_changes_nothing() {
        let [old, new] = some();
        for odd in ["", "none", "-----BEGIN CERTIFICATE-----\nAA\n"] {
            assert!(candidates(&secret(&[&old], &[]), odd).is_empty(), "{odd}");
        }
        assert!(candidates(&Data::new(), &new).is_empty(), "there is nothing to add to");
    }
}
