//! Bytes on their way.

use std::{
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::Fault;
use crate::{accept, shared::RUNTIME};

const DELAY: Duration = Duration::from_millis(300);
/// Bytes a second of a narrow link.
const NARROW: u32 = 8000;
/// Bytes that wait at the link for their turn, besides what the sender's kernel keeps.
const QUEUE: u32 = 32 << 10;
/// So many parts are under way at the most.
const UNDER_WAY: usize = 64;

/// Carries connections to an address.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    _carries: JoinSet<()>,
}

#[derive(Clone, Copy, Default)]
struct State {
    fault: Option<Fault>,
    /// How often it was half open: connections of before are dead.
    half_open: u32,
}

impl Wire {
    pub(super) async fn to(server: SocketAddr) -> Arc<Self> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(QUEUE).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let address = listener.local_addr().unwrap();
        let (state, mut carries) = (Arc::new(watch::Sender::new(State::default())), JoinSet::new());
        let of_each = state.clone();
        let carried = accept::each(listener, move |client| carry(client, server, of_each.subscribe()));
        carries.spawn_on(carried, RUNTIME.handle());
        Arc::new(Self { address, state, _carries: carries })
    }

    pub(super) fn set(&self, fault: Option<Fault>) {
        self.state.send_modify(|state| {
            state.fault = fault;
            state.half_open += u32::from(fault == Some(Fault::HalfOpen));
        });
    }
}

/// Carries one connection until a side ends it, or it is cut.
async fn carry(client: TcpStream, server: SocketAddr, mut state: watch::Receiver<State>) {
    let is_cut = |state: &State| state.fault == Some(Fault::Cut);
    // So that the end of it is a reset.
    client.set_zero_linger().unwrap();
    if is_cut(&state.borrow()) {
        return;
    }
    let Ok(there) = TcpStream::connect(server).await else { return };
    for stream in [&client, &there] {
        stream.set_nodelay(true).unwrap();
    }
    let begun = state.borrow().half_open;
    let ((from, to), (back_from, back_to)) = (client.into_split(), there.into_split());
    tokio::select! {
        () = pump(from, back_to, begun, state.clone()) => {}
        () = pump(back_from, to, begun, state.clone()) => {}
        _ = state.wait_for(is_cut) => {}
    }
}

/// Carries one direction of a connection that began when the link had been half open so often.
async fn pump(from: OwnedReadHalf, to: OwnedWriteHalf, begun: u32, state: watch::Receiver<State>) {
    let (under_way, arriving) = mpsc::channel(UNDER_WAY);
    let mut arrive = pin!(arrive(to, arriving));
    tokio::select! {
        () = enter(from, under_way, begun, state) => arrive.await,
        () = &mut arrive => {}
    }
}

/// Takes in what is sent as fast as the link is wide, and says when it is to arrive.
async fn enter(
    mut from: OwnedReadHalf,
    under_way: mpsc::Sender<(Instant, Vec<u8>)>,
    begun: u32,
    state: watch::Receiver<State>,
) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let is_narrow = state.borrow().fault == Some(Fault::Narrow);
        let most = if is_narrow { 1 << 10 } else { bytes.len() };
        let Ok(read @ 1..) = from.read(&mut bytes[..most]).await else { return };
        let now = *state.borrow();
        if now.half_open != begun {
            continue;
        }
        if is_narrow {
            sleep(Duration::from_secs(1) * u32::try_from(read).unwrap() / NARROW).await;
        }
        let is_far = matches!(now.fault, Some(Fault::Far | Fault::Narrow));
        let due = Instant::now() + if is_far { DELAY } else { Duration::ZERO };
        if under_way.send((due, bytes[..read].to_vec())).await.is_err() {
            return;
        }
    }
}

async fn arrive(mut to: OwnedWriteHalf, mut arriving: mpsc::Receiver<(Instant, Vec<u8>)>) {
    while let Some((due, part)) = arriving.recv().await {
        sleep_until(due).await;
        if to.write_all(&part).await.is_err() {
            return;
        }
    }
}
