//! How connections to a server come about: without detour, or by a tunnel that a proxy makes. TLS is with the server in both cases: the
//! proxy sees where to, and nothing of what.

use std::{
    error::Error,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use crate::failure::NoTunnel;

/// A connector without TLS.
#[derive(Clone)]
pub(super) enum Way {
    /// To the server itself.
    Direct(HttpConnector),
    /// To a proxy, and by it to the server.
    Tunnel(Tunnel<HttpConnector>),
}

impl Way {
    /// To this server, by the proxy if there is one. What its URL has of a user and a password is told it.
    pub(super) fn to(server: &Uri, http: HttpConnector, proxy: Option<&Uri>) -> Self {
        let matcher = proxy.map(|proxy| Matcher::builder().https(proxy.to_string()).build());
        let Some(proxy) = matcher.and_then(|matcher| matcher.intercept(server)) else {
            return Self::Direct(http);
        };
        let tunnel = Tunnel::new(proxy.uri().clone(), http);
        Self::Tunnel(match proxy.basic_auth() {
            Some(auth) => tunnel.with_auth(auth.clone()),
            None => tunnel,
        })
    }
}

/// What the error of a tunnel means, which tells that in words alone.
fn no_tunnel(error: &impl Error) -> NoTunnel {
    let said = error.to_string();
    NoTunnel(match () {
        () if said.contains("authorization") => "its proxy wants a user and a password, or other ones (407)",
        () if said.contains("unsuccessful") => "its proxy does not connect to it",
        () => "its proxy cannot be reached",
    })
}

impl Service<Uri> for Way {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(http) => http.poll_ready(context).map_err(BoxError::from),
            Self::Tunnel(tunnel) => tunnel.poll_ready(context).map_err(BoxError::from),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(http) => {
                let connecting = http.call(server);
                Box::pin(async move { connecting.await.map_err(BoxError::from) })
            }
            Self::Tunnel(tunnel) => {
                let connecting = tunnel.call(server);
                Box::pin(async move { connecting.await.map_err(|error| no_tunnel(&error).into()) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::failure::{Failure, classify};

    /// What is said where the proxy answers with this.
    async fn answered(answer: &'static [u8]) -> String {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Uri = format!("http://{}", proxy.local_addr().unwrap()).parse().unwrap();
        let server: Uri = "https://leader.example:6443".parse().unwrap();
        let mut way = Way::to(&server, HttpConnector::new(), Some(&url));
        let answers = async {
            let (mut connection, _) = proxy.accept().await.unwrap();
            let mut text = vec![0; 1024];
            let _ = connection.read(&mut text).await.unwrap();
            connection.write_all(answer).await.unwrap();
        };
        let (connected, ()) = tokio::join!(way.call(server), answers);
        let error = connected.map(drop).unwrap_err();
        match classify(&kube::Error::Service(error)) {
            Failure::Unreachable(why) => why.to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn what_a_proxy_refuses_is_said_of_the_proxy() {
        let password = answered(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
        assert!(password.contains("user and a password"), "{password}");
        let refused = answered(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
        assert_eq!(refused, "its proxy does not connect to it");
        assert_eq!(answered(b"").await, "its proxy cannot be reached");
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let url: Uri = format!("http://{closed}").parse().unwrap();
        let server: Uri = "https://leader.example:6443".parse().unwrap();
        let away = Way::to(&server, HttpConnector::new(), Some(&url)).call(server).await;
        let away = classify(&kube::Error::Service(away.map(drop).unwrap_err()));
        assert_eq!(away, Failure::Unreachable("its proxy cannot be reached"));
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_a_tunnel_by_who_may_have_one() {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = proxy.local_addr().unwrap();
        let url: Uri = format!("http://user:secret@{address}").parse().unwrap();
        let server: Uri = "https://leader.example:6443".parse().unwrap();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        let mut way = Way::to(&server, http.clone(), Some(&url));
        assert!(matches!(Way::to(&server, http, None), Way::Direct(_)));
        let asked = async {
            let (mut connection, _) = proxy.accept().await.unwrap();
            let mut text = vec![0; 1024];
            let read = connection.read(&mut text).await.unwrap();
            connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            String::from_utf8(text[..read].to_vec()).unwrap()
        };
        let (connected, asked) = tokio::join!(way.call(server), asked);
        assert!(connected.is_ok());
        assert!(asked.starts_with("CONNECT leader.example:6443 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("Proxy-Authorization: Basic dXNlcjpzZWNyZXQ="), "{asked}");
    }
}
