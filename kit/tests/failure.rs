//! Failures as real connections give them, through the client that members use.

#![cfg(test)]

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc};

use api::membership::Via;
use k8s_openapi::{ByteString, api::core::v1::ConfigMap};
use kit::{
    client,
    failure::{Failure, classify},
};
use kube::Api;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

fn authority() -> Authority {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Authority { certificate, issuer: Issuer::new(params, key) }
}

/// What asking a server says, whose certificate is for `name`, valid in these years, and signed by `by`.
async fn asking(name: &str, years: (i32, i32), by: &Authority, trusting: &Authority) -> Failure {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(years.0, 1, 1), date_time_ymd(years.1, 1, 1));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &by.issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();

    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut server = JoinSet::new();
    server.spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            drop(acceptor.accept(connection).await);
        }
    });
    ask(&format!("https://127.0.0.1:{port}"), trusting).await
}

async fn ask(server: &str, trusting: &Authority) -> Failure {
    let secret = [("ca.crt", trusting.certificate.pem()), ("token", "t".to_owned())];
    let secret: BTreeMap<_, _> =
        secret.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).into();
    let credential = client::Credential::read(&secret).unwrap();
    let client = client::remote(server, &credential, &Via::default()).unwrap();
    let answer = Api::<ConfigMap>::namespaced(client, "x").get_opt("x").await;
    classify(&answer.err().unwrap())
}

#[tokio::test]
async fn what_is_wrong_with_a_connection_is_found_in_the_error() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (ours, other) = (authority(), authority());
    let now = (2000, 2999);
    for (failure, part) in [
        (asking("127.0.0.1", now, &other, &ours).await, "another authority"),
        (asking("10.0.0.1", now, &ours, &ours).await, "not for this address"),
    ] {
        assert!(matches!(&failure, Failure::Untrusted(why) if why.contains(part)), "{failure:?}, not {part}");
    }
    for (failure, part) in [
        (asking("127.0.0.1", (2000, 2001), &ours, &ours).await, "expired 2001-01-01"),
        (asking("127.0.0.1", (2998, 2999), &ours, &ours).await, "not valid before 2998-01-01"),
    ] {
        assert!(matches!(&failure, Failure::Expired(why) if why.contains(part)), "{failure:?}, not {part}");
    }
    // A connection that ends after the handshake, nothing that listens, and a name nobody knows.
    let ends = asking("127.0.0.1", now, &ours, &ours).await;
    assert_eq!(ends, Failure::Unreachable("the connection broke"));
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
    let refused = ask(&format!("https://{free}"), &ours).await;
    assert!(matches!(refused, Failure::Unreachable(why) if why.contains("refused")), "{refused:?}");
    let unknown = ask("https://leader.invalid", &ours).await;
    assert_eq!(unknown, Failure::Unreachable("its name cannot be resolved"));
}
