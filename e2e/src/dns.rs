//! A cluster's DNS server, asked for single records.

pub mod expected;

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

pub use hickory_proto::{op::ResponseCode as Code, rr::RecordType as Type};
use hickory_proto::{
    op::{Message, Query, ResponseCode},
    rr::{Name, RData, Record},
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

use crate::{cluster::Cluster, waiting::eventually};

/// Where CoreDNS listens in its Pod.
const PORT: u16 = 1053;
/// A machine that does much else may keep CoreDNS waiting.
const LIMIT: Duration = Duration::from_secs(20);

/// By what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// What a DNS server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub code: ResponseCode,
    /// As in `10.0.0.1`, `fd00::1`, `80 web.shop.svc.clusterset.local.`; in order, doubles too.
    pub records: Vec<String>,
    /// The names and addresses that came along.
    pub additional: BTreeSet<(String, String)>,
    /// Not all fitted.
    pub truncated: bool,
    /// How long the records may be kept, in seconds.
    pub ttl: Option<u32>,
}

impl Answer {
    /// It has these records, each once.
    pub fn is(&self, records: &BTreeSet<String>) -> bool {
        self.records.iter().eq(records)
    }

    /// There is no such name.
    pub fn is_no_name(&self) -> bool {
        self.code == ResponseCode::NXDomain && self.records.is_empty()
    }

    /// The name exists, without such a record.
    pub fn is_no_record(&self) -> bool {
        self.code == ResponseCode::NoError && self.records.is_empty()
    }
}

impl Cluster {
    /// Asks the DNS server; by TCP if the answer does not fit a packet.
    pub async fn lookup(&self, name: &str, type_: Type) -> Result<Answer, String> {
        let answer = self.lookup_by(Transport::Udp, name, type_).await?;
        if answer.truncated { self.lookup_by(Transport::Tcp, name, type_).await } else { Ok(answer) }
    }

    /// Asks the DNS server in its Pod, from outside of the cluster.
    pub async fn lookup_by(&self, transport: Transport, name: &str, type_: Type) -> Result<Answer, String> {
        let params = ListParams::default().labels("k8s-app=kube-dns");
        let pods = self.api::<Pod>("kube-system").list(&params).await.map_err(|error| error.to_string())?;
        let ready = pods.iter().find_map(fleet::agnhost::ready_address).ok_or("CoreDNS is not ready")?;
        let server = SocketAddr::new(ready.parse().unwrap(), PORT);
        let mut message = Message::query();
        let name = Name::from_ascii(format!("{name}.")).unwrap();
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(name, type_));
        let question = message.to_vec().unwrap();
        let asked = async {
            match transport {
                Transport::Udp => by_udp(server, &question).await,
                Transport::Tcp => by_tcp(server, &question).await,
            }
        };
        let heard = timeout(LIMIT, asked).await.map_err(|_| format!("no answer from {server}"))?;
        let heard = heard.map_err(|error| format!("{server}: {error}"))?;
        let heard = Message::from_vec(&heard).map_err(|error| error.to_string())?;
        assert_eq!(heard.metadata.id, message.metadata.id);
        let mut records: Vec<_> = heard.answers.iter().map(words).collect();
        records.sort();
        Ok(Answer {
            code: heard.metadata.response_code,
            records,
            additional: heard.additionals.iter().map(|r| (r.name.to_ascii(), words(r))).collect(),
            truncated: heard.metadata.truncation,
            ttl: heard.answers.first().map(|record| record.ttl),
        })
    }

    /// Waits until an answer is right.
    pub async fn answers(&self, name: &str, type_: Type, is_right: impl Fn(&Answer) -> bool) -> Answer {
        eventually(&format!("{} knows {type_} of {name}", self.name), || async {
            let answer = self.lookup(name, type_).await?;
            if is_right(&answer) { Ok(answer) } else { Err(format!("{answer:?}")) }
        })
        .await
    }
}

async fn by_udp(server: SocketAddr, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut heard = vec![0; 65_535];
    let length = socket.recv(&mut heard).await?;
    heard.truncate(length);
    Ok(heard)
}

async fn by_tcp(server: SocketAddr, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_u16(u16::try_from(question.len()).unwrap()).await?;
    stream.write_all(question).await?;
    let mut heard = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut heard).await?;
    Ok(heard)
}

fn words(record: &Record) -> String {
    match &record.data {
        RData::A(ip) => ip.to_string(),
        RData::AAAA(ip) => ip.to_string(),
        RData::SRV(srv) => format!("{} {}", srv.port, srv.target.to_ascii()),
        RData::TXT(txt) => txt.to_string(),
        other => format!("{other:?}"),
    }
}
