//! Certificates of one control plane. Two CAs: one for the API server and its clients, one for etcd alone, so
//! that a certificate the cluster signs (CSR API) is none for its store.

use std::{fs, io, net::IpAddr, path::Path};

use jiff::{Span, Zoned, tz::TimeZone};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// The subject of a certificate.
struct Subject<'a> {
    common_name: &'a str,
    organization: Option<&'a str>,
    /// DNS names and IP addresses; a server has some, a client none.
    names: &'a [String],
}

struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// Writes `ca`, `apiserver`, `admin`, `controller-manager` and, with addresses of a node, its own (`.crt` and `.key` each), `sa.key` and
/// `sa.pub` (the key of ServiceAccount tokens) to `dir`, and `ca`, `server` and `client` to `dir/etcd`.
pub(crate) fn write(
    dir: &Path,
    cluster: &str,
    node: &[IpAddr],
    api_server_names: &[String],
) -> io::Result<()> {
    let client = |common_name, organization| Subject { common_name, organization, names: &[] };
    let ca = Authority::new(&format!("{cluster} cluster CA"))?;
    ca.write(dir)?;
    let api_server = Subject { common_name: "kube-apiserver", organization: None, names: api_server_names };
    ca.issue(dir, "apiserver", &api_server)?;
    ca.issue(dir, "admin", &client("kubernetes-admin", Some("system:masters")))?;
    ca.issue(dir, "controller-manager", &client("system:kube-controller-manager", None))?;
    if !node.is_empty() {
        ca.issue(dir, "scheduler", &client("system:kube-scheduler", None))?;
        ca.issue(dir, "kube-proxy", &client("system:kube-proxy", None))?;
        // A node is a client of the API server, which in turn is one of the node (logs, exec).
        let kubelet = Subject {
            common_name: &format!("system:node:{cluster}"),
            organization: Some("system:nodes"),
            names: &node_names(node).chain([cluster.to_owned()]).collect::<Vec<_>>(),
        };
        ca.issue(dir, "kubelet", &kubelet)?;
        ca.issue(dir, "apiserver-kubelet-client", &client("kube-apiserver", Some("system:masters")))?;
    }

    let accounts = generate_key()?;
    write_key(&dir.join("sa.key"), &accounts)?;
    fs::write(dir.join("sa.pub"), accounts.public_key_pem())?;

    let etcd = dir.join("etcd");
    fs::create_dir_all(&etcd)?;
    let etcd_ca = Authority::new(&format!("{cluster} etcd CA"))?;
    etcd_ca.write(&etcd)?;
    let names: Vec<_> =
        ["127.0.0.1".into(), "localhost".into()].into_iter().chain(node_names(node)).collect();
    etcd_ca.issue(&etcd, "server", &Subject { common_name: "etcd", organization: None, names: &names })?;
    etcd_ca.issue(&etcd, "client", &client("kube-apiserver", None))
}

fn node_names(addresses: &[IpAddr]) -> impl Iterator<Item = String> {
    addresses.iter().map(ToString::to_string)
}

impl Authority {
    fn new(name: &str) -> io::Result<Self> {
        let mut params = params(&Subject { common_name: name, organization: None, names: &[] })?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = generate_key()?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    fn write(&self, dir: &Path) -> io::Result<()> {
        fs::write(dir.join("ca.crt"), self.certificate.pem())?;
        write_key(&dir.join("ca.key"), self.issuer.key())
    }

    fn issue(&self, dir: &Path, file: &str, subject: &Subject<'_>) -> io::Result<()> {
        let mut params = params(subject)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if !subject.names.is_empty() {
            // Both: etcd is a client of itself with its server certificate.
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let key = generate_key()?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        fs::write(dir.join(format!("{file}.crt")), certificate.pem())?;
        write_key(&dir.join(format!("{file}.key")), &key)
    }
}

fn params(subject: &Subject<'_>) -> io::Result<CertificateParams> {
    let mut params = CertificateParams::new(subject.names).map_err(io::Error::other)?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, subject.common_name);
    if let Some(organization) = subject.organization {
        name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name = name;
    let today = Zoned::now().with_time_zone(TimeZone::UTC).date();
    // From yesterday on: clocks of clients may be behind.
    let [from, to] =
        [today.saturating_sub(Span::new().days(1)), today.saturating_add(Span::new().days(3650))].map(
            |day| date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs()),
        );
    (params.not_before, params.not_after) = (from, to);
    Ok(params)
}

fn generate_key() -> io::Result<KeyPair> {
    KeyPair::generate().map_err(io::Error::other)
}

fn write_key(path: &Path, key: &KeyPair) -> io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(key.serialize_pem().as_bytes())
}
