//! What a daemon or an API server measures.

use std::{collections::BTreeMap, io, net::SocketAddr};

use kube::Client;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Prometheus' text.
pub struct Metrics(String);

impl Metrics {
    /// Those of a text, as `/metrics` answers it.
    pub fn parse(text: Vec<u8>) -> Self {
        Self(String::from_utf8(text).unwrap())
    }

    /// What the daemon that listens there measures now.
    pub async fn read(listen: SocketAddr) -> io::Result<Self> {
        let mut connection = TcpStream::connect(listen).await?;
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        connection.read_to_string(&mut text).await?;
        Ok(Self(text))
    }

    /// What the client's API server measures now.
    pub async fn of_api_server(client: &Client) -> Result<Self, kube::Error> {
        let request = http::Request::get("/metrics").body(Vec::new()).map_err(kube::Error::HttpError)?;
        client.request_text(request).await.map(Self)
    }

    /// The sum over all labels of the metric.
    pub fn sum(&self, metric: &str) -> f64 {
        self.values(metric).map(|(_, value)| value).sum()
    }

    /// The sum over all other labels of the metric where it has this label; `None` if there is none.
    pub fn of(&self, metric: &str, label: &str, is: &str) -> Option<f64> {
        let wanted = format!("{label}=\"{is}\"");
        let values = self.values(metric).filter(|(labels, _)| labels.contains(&wanted));
        values.map(|(_, value)| value).reduce(|sum, value| sum + value)
    }

    /// The sums of the metric by the values of a label, for example of `freeport_reconcile_total` by `controller`.
    pub fn by(&self, metric: &str, label: &str) -> BTreeMap<String, f64> {
        let label = format!("{label}=\"");
        let mut sums = BTreeMap::new();
        for (labels, value) in self.values(metric) {
            let of = labels.split_once(&label).and_then(|(_, rest)| rest.split_once('"'));
            *sums.entry(of.map_or_else(String::new, |(of, _)| of.to_owned())).or_default() += value;
        }
        sums
    }

    /// The sums of the metric by the values of several labels, in their order and with spaces between; a label that is not there counts
    /// as empty.
    pub fn by_all(&self, metric: &str, labels: &[&str]) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (has, value) in self.values(metric) {
            let of = labels.iter().map(|label| {
                let found =
                    has.split([',', '{', '}']).find_map(|pair| pair.strip_prefix(label)?.strip_prefix('='));
                found.unwrap_or_default().trim_matches('"')
            });
            *sums.entry(of.collect::<Vec<_>>().join(" ")).or_default() += value;
        }
        sums
    }

    /// Whether anything is said about this.
    pub fn mentions(&self, what: &str) -> bool {
        self.0.contains(what)
    }

    /// Labels and values of a metric.
    fn values(&self, metric: &str) -> impl Iterator<Item = (&str, f64)> {
        self.0.lines().filter_map(move |line| {
            let rest = line.strip_prefix(metric).filter(|rest| rest.starts_with(['{', ' ']))?;
            let (labels, value) = rest.rsplit_once(' ')?;
            Some((labels, value.parse().ok()?))
        })
    }
}
