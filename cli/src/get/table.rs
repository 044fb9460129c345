//! Rows as lines, as kubectl prints them.

use api::mcs::ServiceImportType;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use picture::{
    age,
    listing::{ConflictRow, ExportRow, ImportRow, ServiceRow},
};

use super::{ClusterRow, Listing, Rows};
use crate::{
    printable::{printable, table},
    status::report::{MemberState, Role},
};

/// What an unknown value looks like.
const UNKNOWN: &str = "-";

/// One kind of rows.
trait Row {
    /// The columns; those from `WIDE` on are for `-o wide`.
    const HEAD: &'static [&'static str];
    /// Number of columns that are always there.
    const NARROW: usize;
    /// The cells, as many as columns.
    fn cells(&self, now: Timestamp) -> Vec<String>;
    /// What a command takes that is about the row.
    fn name(&self) -> String;
}

/// The listing as a table, with a newline at the end of each line; nothing if there are no rows.
pub fn text(listing: &Listing, wide: bool, headers: bool) -> String {
    let now = listing.now;
    match &listing.items {
        Rows::Services(rows) => lines(rows, now, wide, headers),
        Rows::Exports(rows) => lines(rows, now, wide, headers),
        Rows::Imports(rows) => lines(rows, now, wide, headers),
        Rows::Clusters(rows) => lines(rows, now, wide, headers),
        Rows::Conflicts(rows) => lines(rows, now, wide, headers),
    }
}

/// The names of the rows, one on a line.
pub fn names(listing: &Listing) -> String {
    fn of<R: Row>(rows: &[R]) -> String {
        rows.iter().map(|row| printable(&row.name()) + "\n").collect()
    }
    match &listing.items {
        Rows::Services(rows) => of(rows),
        Rows::Exports(rows) => of(rows),
        Rows::Imports(rows) => of(rows),
        Rows::Clusters(rows) => of(rows),
        Rows::Conflicts(rows) => of(rows),
    }
}

fn lines<R: Row>(rows: &[R], now: Timestamp, wide: bool, headers: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let columns = if wide { R::HEAD.len() } else { R::NARROW };
    let head = headers.then(|| R::HEAD.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
    let cells = rows.iter().map(|row| row.cells(now));
    let cells: Vec<Vec<_>> = head
        .into_iter()
        .chain(cells)
        .map(|row| row.into_iter().take(columns).map(|cell| printable(&cell)).collect())
        .collect();
    table(&cells).into_iter().map(|line| line + "\n").collect()
}

impl Row for ServiceRow {
    const HEAD: &'static [&'static str] =
        &["NAMESPACE", "NAME", "TYPE", "PORTS", "EXPORTED BY", "IMPORTED BY", "CONFLICT"];
    const NARROW: usize = 7;

    fn cells(&self, _: Timestamp) -> Vec<String> {
        let importer = |(cluster, is_ready): (&String, &bool)| {
            if *is_ready { cluster.clone() } else { format!("{cluster}(not ready)") }
        };
        vec![
            self.namespace.clone(),
            self.name.clone(),
            type_(self.type_),
            joined(self.ports.iter().cloned()),
            joined(self.exported_by.iter().cloned()),
            joined(self.imported_by.iter().map(importer)),
            if self.conflict { "True" } else { "False" }.to_owned(),
        ]
    }

    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Row for ExportRow {
    const HEAD: &'static [&'static str] =
        &["CLUSTER", "NAMESPACE", "NAME", "VALID", "READY", "CONFLICT", "AGE", "MESSAGE"];
    const NARROW: usize = 7;

    fn cells(&self, now: Timestamp) -> Vec<String> {
        vec![
            self.cluster.clone(),
            self.namespace.clone(),
            self.name.clone(),
            known(self.valid.as_deref()),
            known(self.ready.as_deref()),
            known(self.conflict.as_deref()),
            since(self.created.as_ref(), now),
            known(self.message.as_deref()),
        ]
    }

    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Row for ImportRow {
    const HEAD: &'static [&'static str] =
        &["CLUSTER", "NAMESPACE", "NAME", "TYPE", "IP", "PORTS", "CLUSTERS", "READY", "AGE", "MESSAGE"];
    const NARROW: usize = 9;

    fn cells(&self, now: Timestamp) -> Vec<String> {
        vec![
            self.cluster.clone(),
            self.namespace.clone(),
            self.name.clone(),
            type_(self.type_),
            joined(self.ips.iter().cloned()),
            joined(self.ports.iter().cloned()),
            joined(self.clusters.iter().cloned()),
            known(self.ready.as_deref()),
            since(self.created.as_ref(), now),
            known(self.message.as_deref()),
        ]
    }

    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Row for ClusterRow {
    const HEAD: &'static [&'static str] =
        &["CLUSTER", "ROLE", "STATE", "RENEWED", "VERSION", "EXPORTS", "CONTEXT", "CLUSTERSET"];
    const NARROW: usize = 7;

    fn cells(&self, now: Timestamp) -> Vec<String> {
        let role = self.role.map(|role| match role {
            Role::Leader => "leader",
            Role::Member => "member",
        });
        let state = match self.state {
            MemberState::Ready => "Ready",
            MemberState::NotReady => "NotReady",
            MemberState::Left => "Left",
            MemberState::Unknown => "Unknown",
        };
        let exports = self.exports.map(|exports| exports.to_string());
        vec![
            self.cluster_id.clone(),
            known(role),
            state.to_owned(),
            self.renewed
                .as_ref()
                .map_or_else(|| UNKNOWN.into(), |_| since(self.renewed.as_ref(), now) + " ago"),
            known(self.version.as_deref()),
            known(exports.as_deref()),
            known(self.context.as_deref()),
            known(self.cluster_set.as_deref()),
        ]
    }

    fn name(&self) -> String {
        self.cluster_id.clone()
    }
}

impl Row for ConflictRow {
    const HEAD: &'static [&'static str] = &["NAMESPACE", "NAME", "CLUSTER", "REASON", "SINCE", "MESSAGE"];
    const NARROW: usize = 6;

    fn cells(&self, now: Timestamp) -> Vec<String> {
        vec![
            self.namespace.clone(),
            self.name.clone(),
            self.cluster.clone(),
            self.reason.clone(),
            since(self.since.as_ref(), now),
            self.message.clone(),
        ]
    }

    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn known(text: Option<&str>) -> String {
    text.unwrap_or(UNKNOWN).to_owned()
}

fn joined(all: impl Iterator<Item = String>) -> String {
    let all: Vec<_> = all.collect();
    if all.is_empty() { UNKNOWN.to_owned() } else { all.join(",") }
}

fn since(time: Option<&Time>, now: Timestamp) -> String {
    time.map_or_else(|| UNKNOWN.into(), |time| age::text(now.duration_since(time.0)))
}

fn type_(type_: Option<ServiceImportType>) -> String {
    known(type_.map(|type_| match type_ {
        ServiceImportType::ClusterSetIP => "ClusterSetIP",
        ServiceImportType::Headless => "Headless",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get::Looked;

    fn shown(wide: bool, headers: bool) -> String {
        let row = ExportRow {
            cluster: "east".into(),
            namespace: "shop".into(),
            name: "web".into(),
            valid: Some("True".into()),
            ready: None,
            conflict: None,
            message: Some("Ab: c\u{1b}[2Jd".into()),
            created: Some(Time(Timestamp::from_second(1_000).unwrap())),
        };
        let now = Timestamp::from_second(1_300).unwrap();
        text(&Listing::new(Rows::Exports(vec![row]), Looked::default(), now), wide, headers)
    }

    #[test]
    fn rows_are_a_table_without_control_characters() {
        let narrow = "CLUSTER  NAMESPACE  NAME  VALID  READY  CONFLICT  AGE\n\
                      east     shop       web   True   -      -         5m\n";
        assert_eq!(shown(false, true), narrow);
        assert_eq!(shown(true, false), "east  shop  web  True  -  -  5m  Ab: c [2Jd\n");
    }

    #[test]
    fn nothing_is_an_empty_text() {
        let nothing = Listing::new(Rows::Services(vec![]), Looked::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(text(&nothing, true, true) + &names(&nothing), "");
    }
}
