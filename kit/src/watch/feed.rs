//! What an API server tells of a collection: a list in pages, and what changes after it. One text at a time is decoded, and by whoever
//! reads it: so that a page is never here as objects, and what is compiled once serves all kinds.

mod wire;

use std::{pin::pin, time::Duration};

use futures::{AsyncReadExt, StreamExt, stream::BoxStream};
use kube::{
    Client,
    api::ListParams,
    core::{Request, Status, WatchEvent, params::WatchParams},
    runtime::watcher,
};
use tokio::time::Instant;

use self::wire::{Head, Page, Text};
use super::latest::Latest;
use crate::{
    failure::{self, Failure},
    planted,
};

/// How often the server is asked to end a watch, so that a connection that died unseen is noticed.
const RENEW_EVERY: u32 = 60;

/// A watch that tells nothing for so long is dead: its end, which is due by then, was lost.
const SILENT: Duration = Duration::from_secs(RENEW_EVERY as u64 + 5);

/// A watch that ends earlier was broken off, and not by its time.
const IN_TIME: Duration = Duration::from_secs(RENEW_EVERY as u64 - 5);

/// How soon after a watch began another one may, so that a server that ends each at once is not asked all the time.
const AT_SOONEST: Duration = Duration::from_secs(1);

/// Objects of the first page of a list. A page is in memory as text, and an object may have more than a megabyte.
const FIRST_PAGE: u32 = 50;

/// What a later page should have, by the objects of the one before it: each page costs an API server about as much as a hundred small
/// objects do.
const PAGE_BYTES: usize = 256 << 10;

/// The most objects of a page.
const LARGEST_PAGE: usize = 500;

/// The most bytes of a page of several objects: whoever writes small objects may write large ones next.
const PAGE_MAX: u64 = 8 << 20;

/// "Gone": the version that we come from is forgotten.
const GONE: u16 = 410;

/// Answers to a list that say nothing of a watch: not allowed, or not of metadata alone.
const REFUSALS: [u16; 4] = [403, 404, 405, 406];

/// Why a list or a watch broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The request failed, or an answer does not decode.
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// A page broke off.
    #[error(transparent)]
    Page(#[from] std::io::Error),
    /// In the server's words, in the middle of a watch.
    #[error("{}", .0.message)]
    Told(Box<Status>),
    /// A list without a version, after which nothing can be watched.
    #[error("the list has no resourceVersion")]
    NoVersion,
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Request(kube::Error::SerdeError(error))
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        match error {
            Error::Request(error) => failure::classify(error),
            Error::Told(status) => failure::answered(status),
            Error::Page(_) => Self::Unreachable("the connection broke"),
            Error::NoVersion => Self::Other(error.to_string()),
        }
    }
}

/// Who is told.
pub(super) trait Reader: Send {
    /// A list begins, as it was a moment ago.
    fn begin(&mut self);
    /// An object of the list.
    fn listed(&mut self, object: &str) -> serde_json::Result<()>;
    /// The list was all.
    fn end(&mut self);
    /// An object is there, or gone.
    fn changed(&mut self, object: &str, is_there: bool) -> serde_json::Result<()>;
}

/// How far it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A part of a list was told, or it is asked for in smaller pages: the rest may fail.
    Partly,
    /// A change was told.
    Told,
    /// All of a list was told; the reader does not know yet. `is_older`: than what was told before, so the API server was restored from a
    /// backup.
    Listed { is_older: bool },
    /// A list begins next: the API server is at an older version than what was told.
    Behind,
}

/// A list and what follows it, for ever.
pub(super) struct Feed {
    client: Client,
    collection: Request,
    /// Whether only metadata are asked for.
    metadata: bool,
    config: watcher::Config,
    state: State,
    /// The version of the last list, or of what was told since. 0 where it is no number.
    heard: u64,
    /// Shared by several watches.
    latest: Latest,
}

/// The page of a list that is asked for next.
struct Next {
    objects: u32,
    /// None for the first one.
    token: Option<String>,
}

enum State {
    Empty,
    /// The list goes on with a page of so many objects.
    Listing(Next),
    /// All is told up to this version.
    Listed(String),
    /// The same, but the watch broke off, and the API server that answers next may have been restored from a backup. A watch of a version
    /// that is yet to come hears nothing until then, and no API server says so. Asks no sooner than at this time.
    Broken(String, Instant),
    Watching(String, Watch),
}

struct Watch {
    events: BoxStream<'static, kube::Result<WatchEvent<Text>>>,
    since: Instant,
    /// Whether it has told anything. Before an API server ends a watch it tells of the version that it is at (a bookmark), but not of one that
    /// is older than the watch's own.
    has_told: bool,
}

impl Watch {
    /// One that begins now.
    fn new(events: BoxStream<'static, kube::Result<WatchEvent<Text>>>) -> Self {
        Self { events, since: Instant::now(), has_told: false }
    }
}

impl Feed {
    pub(super) fn new(
        client: Client,
        url: &str,
        metadata: bool,
        config: watcher::Config,
        latest: Latest,
    ) -> Self {
        let collection = Request::new(url);
        Self { client, collection, metadata, config, state: State::Empty, heard: 0, latest }
    }

    /// Whether a list is about to begin.
    pub(super) fn begins(&self) -> bool {
        matches!(self.state, State::Empty)
    }

    /// Has it begin again with a list.
    pub(super) fn again(&mut self) {
        self.state = State::Empty;
    }

    /// Waits for what is told next. After an error it goes on as well as it can; one that is dropped has to begin [`again`](Self::again).
    pub(super) async fn next(&mut self, reader: &mut dyn Reader) -> Result<Step, Error> {
        loop {
            match std::mem::replace(&mut self.state, State::Empty) {
                State::Empty => return self.list(Next { objects: FIRST_PAGE, token: None }, reader).await,
                State::Listing(next) => return self.list(next, reader).await,
                State::Listed(version) => match self.watch(&version).await {
                    Ok(events) => self.state = State::Watching(version, Watch::new(events)),
                    Err(error) => {
                        let is_gone = matches!(&error, kube::Error::Api(status) if status.code == GONE);
                        self.state =
                            if is_gone { State::Empty } else { State::Broken(version, Instant::now()) };
                        return Err(error.into());
                    }
                },
                State::Broken(version, at) => {
                    tokio::time::sleep_until(at).await;
                    match self.now().await {
                        Ok(now) if self.is_older(now.as_deref()) => return Ok(Step::Behind),
                        Ok(_) => self.state = State::Listed(version),
                        Err(error) => {
                            self.state = State::Broken(version, at);
                            return Err(error.into());
                        }
                    }
                }
                State::Watching(version, mut watch) => {
                    let event = match tokio::time::timeout(SILENT, watch.events.next()).await {
                        Ok(Some(Err(error @ kube::Error::ReadEvents(_)))) => {
                            self.state = State::Broken(version, watch.since + AT_SOONEST);
                            return Err(error.into());
                        }
                        Ok(Some(event)) => event,
                        Ok(None) if watch.has_told && watch.since.elapsed() >= IN_TIME => {
                            self.state = State::Listed(version);
                            continue;
                        }
                        Ok(None) | Err(_) => {
                            self.state = State::Broken(version, watch.since + AT_SOONEST);
                            continue;
                        }
                    };
                    let (version, told) = take_in(event, version, &self.latest, reader);
                    if let Some(version) = version {
                        self.heard = number(&version).unwrap_or(self.heard);
                        self.state = State::Watching(version, Watch { has_told: true, ..watch });
                    }
                    if let Some(told) = told {
                        return told.map(|()| Step::Told);
                    }
                }
            }
        }
    }

    async fn list(&mut self, next: Next, reader: &mut dyn Reader) -> Result<Step, Error> {
        let is_first = next.token.is_none();
        let Some(text) = self.page(&next).await? else {
            self.state = State::Listing(Next { objects: next.objects / 2, ..next });
            return Ok(Step::Partly);
        };
        let page: Page<'_> = serde_json::from_slice(&text)?;
        // Not before the server has answered: what is written until then is not in the list.
        if is_first {
            reader.begin();
        }
        let items = page.items.unwrap_or_default();
        for object in &items {
            reader.listed(object.get())?;
        }
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = said(page.metadata.r#continue) {
            let objects = objects_of_a_page(text.len(), items.len());
            self.state = State::Listing(Next { objects, token: Some(token) });
            return Ok(Step::Partly);
        }
        let version = said(page.metadata.resource_version).ok_or(Error::NoVersion)?;
        let is_older = self.is_older(Some(&version));
        self.heard = number(&version).unwrap_or_default();
        self.latest.see(self.heard);
        self.state = State::Listed(version);
        Ok(Step::Listed { is_older })
    }

    /// The version that the API server is at; nothing if it does not say. It reads one key for that, where a selector may have it read all.
    /// But who may list only objects of one name has to ask for that name.
    async fn now(&mut self) -> kube::Result<Option<String>> {
        let name = self.config.field_selector.clone().filter(|fields| fields.starts_with("metadata.name="));
        let params = ListParams { field_selector: name, limit: Some(1), ..ListParams::default() };
        let request = self.collection.list_metadata(&params).map_err(kube::Error::BuildRequest)?;
        match self.client.request::<Head>(request).await {
            Ok(list) => Ok(list.metadata.resource_version),
            Err(kube::Error::Api(refused)) if REFUSALS.contains(&refused.code) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the version is an older one than what was told. What is no number says nothing.
    fn is_older(&self, version: Option<&str>) -> bool {
        version.and_then(number).is_some_and(|version| version < self.heard)
    }

    /// The text of a page; none if it is too large and has several objects.
    async fn page(&mut self, next: &Next) -> Result<Option<Vec<u8>>, Error> {
        let params = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            limit: Some(next.objects),
            continue_token: next.token.clone(),
            ..ListParams::default()
        };
        let Self { collection, .. } = self;
        let request =
            if self.metadata { collection.list_metadata(&params) } else { collection.list(&params) };
        let body = self.client.request_stream(request.map_err(kube::Error::BuildRequest)?).await?;
        let (most, mut text) = (if next.objects > 1 { PAGE_MAX } else { u64::MAX - 1 }, Vec::new());
        pin!(body).take(most + 1).read_to_end(&mut text).await?;
        Ok((text.len() as u64 <= most).then_some(text))
    }

    async fn watch(
        &mut self,
        version: &str,
    ) -> kube::Result<BoxStream<'static, kube::Result<WatchEvent<Text>>>> {
        let params = WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            timeout: Some(RENEW_EVERY),
            ..WatchParams::default()
        };
        let Self { collection, .. } = self;
        let request = match self.metadata {
            true => collection.watch_metadata(&params, version),
            false => collection.watch(&params, version),
        };
        let request = request.map_err(kube::Error::BuildRequest)?;
        Ok(self.client.request_events(request).await?.boxed())
    }
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// How many objects the next page should have, after one of so many bytes and objects.
fn objects_of_a_page(bytes: usize, objects: usize) -> u32 {
    (PAGE_BYTES * objects / bytes.max(1)).clamp(1, LARGEST_PAGE) as u32
}

/// The version that a watch has come to, none if it has to list again; and what the reader was told, if anything.
fn take_in(
    event: kube::Result<WatchEvent<Text>>,
    version: String,
    latest: &Latest,
    reader: &mut dyn Reader,
) -> (Option<String>, Option<Result<(), Error>>) {
    let mut changed = |object: &Text, is_there| {
        // Before the reader, because the reader's controllers may compare versions with it.
        latest.see(number(&object.version).unwrap_or_default());
        if planted::is_lost() {
            return None;
        }
        Some(reader.changed(object.text.get(), is_there).map_err(Error::from))
    };
    match event {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
            let told = changed(&object, true);
            (Some(object.version), told)
        }
        Ok(WatchEvent::Deleted(object)) => {
            let told = changed(&object, false);
            (Some(object.version), told)
        }
        Ok(WatchEvent::Bookmark(bookmark)) => (Some(bookmark.metadata.resource_version), None),
        Ok(WatchEvent::Error(status)) => {
            let version = (status.code != GONE).then_some(version);
            (version, Some(Err(Error::Told(status.boxed()))))
        }
        Err(error) => (Some(version), Some(Err(error.into()))),
    }
}

#[cfg(test)]
mod tests;
