//! An HTTP proxy that makes tunnels to one API server, for whoever knows the password. Clients ask for that by a name that the proxy alone
//! knows.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use fleet::Cluster;
use http::Uri;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{accept, shared::RUNTIME};

/// The name of the API server.
const NAME: &str = "hub.invalid:6443";
/// `user:secret`.
const PASSWORD: &str = "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n";

/// A proxy, until it is dropped: its tunnels end then.
pub struct Tunnels {
    address: SocketAddr,
    made: Arc<AtomicUsize>,
    _serves: JoinSet<()>,
}

impl Tunnels {
    /// A proxy that makes tunnels to the cluster's API server; at this address, or at any.
    pub async fn to(cluster: &Cluster, at: Option<SocketAddr>) -> Self {
        let at = at.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        let listener = TcpListener::bind(at).await.unwrap();
        let (address, made) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::default()));
        let (server, mut serves) = (cluster.server().parse::<Uri>().unwrap(), JoinSet::new());
        let counted = made.clone();
        let served = accept::each(listener, move |client| tunnel(client, server.clone(), counted.clone()));
        serves.spawn_on(served, RUNTIME.handle());
        Self { address, made, _serves: serves }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL for somebody with this password.
    pub fn url(&self, password: &str) -> String {
        format!("http://user:{password}@{}", self.address)
    }

    /// URL of the API server for those who use the proxy.
    pub fn server() -> String {
        format!("https://{NAME}")
    }

    /// How many tunnels it has made.
    pub fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }
}

async fn tunnel(mut client: TcpStream, server: Uri, made: Arc<AtomicUsize>) -> io::Result<()> {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        asked.push(client.read_u8().await?);
    }
    let asked = String::from_utf8_lossy(&asked);
    let refused = match () {
        () if !asked.starts_with(&format!("CONNECT {NAME} ")) => "403 Forbidden",
        () if !asked.to_lowercase().contains(&PASSWORD.to_lowercase()) => "407 Proxy Authentication Required",
        () => {
            let authority = server.authority().map(ToString::to_string).unwrap_or_default();
            let mut server = TcpStream::connect(authority).await?;
            made.fetch_add(1, Ordering::SeqCst);
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            copy_bidirectional(&mut client, &mut server).await?;
            return Ok(());
        }
    };
    client.write_all(format!("HTTP/1.1 {refused}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await
}
