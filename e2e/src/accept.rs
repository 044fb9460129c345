//! Accepts connections for proxies.

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Serves each connection beside the others, for ever. When this is dropped, all of them end.
pub(crate) async fn each<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // How a connection ends does not matter.
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => drop(connections.spawn(serve(accepted.unwrap().0))),
        }
    }
}
