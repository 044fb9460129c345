//! A server that can fall silent: whoever connects then hears nothing, as where the way to a cluster is lost. Its address is one of this
//! machine that other clusters may be told of.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

use crate::shared::RUNTIME;

/// In which a connection to a server that answers stands.
const STANDS: Duration = Duration::from_secs(1);

/// A server, until it is dropped. It ends each connection at once.
pub struct Answering {
    pub address: SocketAddr,
    is_silent: watch::Sender<bool>,
    seen: Arc<Mutex<Seen>>,
    /// What keeps others from connecting while it is silent.
    held: Mutex<Vec<TcpStream>>,
    _serves: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    /// Ports of connections of our own.
    own: BTreeSet<u16>,
    /// When somebody else connected first since it answers.
    reached: Option<Instant>,
}

impl Answering {
    pub async fn begin() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(address(), 0)).unwrap();
        // One connection that nobody accepts, and whatever comes after it is not heard.
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let (is_silent, seen) = (watch::Sender::new(false), Arc::<Mutex<Seen>>::default());
        let mut serves = JoinSet::new();
        serves.spawn_on(serve(listener, is_silent.subscribe(), seen.clone()), RUNTIME.handle());
        Self { address, is_silent, seen, held: Mutex::default(), _serves: serves }
    }

    /// From now on nothing is heard of it.
    pub async fn fall_silent(&self) {
        self.is_silent.send_replace(true);
        while let Ok(connected) = timeout(STANDS, TcpStream::connect(self.address)).await {
            let stream = connected.unwrap();
            self.seen.lock().unwrap().own.insert(stream.local_addr().unwrap().port());
            self.held.lock().unwrap().push(stream);
        }
    }

    /// It answers again.
    pub fn answer(&self) {
        self.seen.lock().unwrap().reached = None;
        self.is_silent.send_replace(false);
        self.held.lock().unwrap().clear();
    }

    /// When somebody connected first since it answers.
    pub fn reached(&self) -> Option<Instant> {
        self.seen.lock().unwrap().reached
    }
}

async fn serve(listener: TcpListener, mut is_silent: watch::Receiver<bool>, seen: Arc<Mutex<Seen>>) {
    while is_silent.wait_for(|silent| !silent).await.is_ok() {
        tokio::select! {
            accepted = listener.accept() => {
                let (_, from) = accepted.unwrap();
                let mut seen = seen.lock().unwrap();
                if !seen.own.contains(&from.port()) {
                    seen.reached.get_or_insert_with(Instant::now);
                }
            }
            _ = is_silent.wait_for(|silent| *silent) => {}
        }
    }
}

/// An address of this machine by which it reaches others. Nothing is sent for that.
fn address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").expect("this machine has a route to others");
    socket.local_addr().unwrap().ip()
}
