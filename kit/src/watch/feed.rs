//! What an API server tells of a collection: a list in pages, and what changes after it. One text at a time is decoded, and by whoever
//! reads it: so that a page is never here as objects, and what is compiled once serves all kinds.

use std::time::Duration;

use futures::{StreamExt, stream::BoxStream};
use kube::{
    Client,
    api::ListParams,
    core::{Request, Status, WatchEvent, params::WatchParams},
    runtime::watcher,
};
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use crate::failure::{self, Failure};

/// How often the server is asked to end a watch, so that a connection that died unseen is noticed.
const RENEW_EVERY: u32 = 60;

/// A watch that tells nothing for so long is dead: its end, which is due by then, was lost.
const SILENT: Duration = Duration::from_secs(RENEW_EVERY as u64 + 5);

/// Objects of a page of a list. A page is in memory as text, and an object may have more than a megabyte.
const PAGE: u32 = 50;

/// "Gone": the version that we come from is forgotten.
const GONE: u16 = 410;

/// Why a list or a watch broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The request failed, or an answer does not decode.
    #[error(transparent)]
    Request(#[from] kube::Error),
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
            Error::NoVersion => Self::Other(error.to_string()),
        }
    }
}

/// Who is told.
pub(super) trait Reader: Send {
    /// A list begins.
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
    /// A list begins, which may fail.
    Begun,
    /// More was told.
    Told,
    /// All of a list was told; the reader does not know yet.
    Listed,
}

/// A list and what follows it, for ever.
pub(super) struct Feed {
    client: Client,
    collection: Request,
    /// Whether only metadata are asked for.
    metadata: bool,
    config: watcher::Config,
    state: State,
}

enum State {
    Empty,
    /// The list goes on with this token.
    Listing(Option<String>),
    /// All is told up to this version.
    Listed(String),
    Watching(String, BoxStream<'static, kube::Result<WatchEvent<Text>>>),
}

impl Feed {
    pub(super) fn new(client: Client, url: &str, metadata: bool, config: watcher::Config) -> Self {
        Self { client, collection: Request::new(url), metadata, config, state: State::Empty }
    }

    /// Has it begin again with a list.
    pub(super) fn again(&mut self) {
        self.state = State::Empty;
    }

    /// Waits for what is told next. After an error it goes on as well as it can; one that is dropped has to begin [`again`](Self::again).
    pub(super) async fn next(&mut self, reader: &mut dyn Reader) -> Result<Step, Error> {
        loop {
            match std::mem::replace(&mut self.state, State::Empty) {
                State::Empty => {
                    reader.begin();
                    self.state = State::Listing(None);
                    return Ok(Step::Begun);
                }
                State::Listing(token) => return self.list(token, reader).await,
                State::Listed(version) => match self.watch(&version).await {
                    Ok(events) => self.state = State::Watching(version, events),
                    Err(error) => {
                        let is_gone = matches!(&error, kube::Error::Api(status) if status.code == GONE);
                        self.state = if is_gone { State::Empty } else { State::Listed(version) };
                        return Err(error.into());
                    }
                },
                State::Watching(version, mut events) => {
                    let Ok(Some(event)) = tokio::time::timeout(SILENT, events.next()).await else {
                        self.state = State::Listed(version);
                        continue;
                    };
                    let (version, told) = take_in(event, version, reader);
                    if let Some(version) = version {
                        self.state = State::Watching(version, events);
                    }
                    if let Some(told) = told {
                        return told.map(|()| Step::Told);
                    }
                }
            }
        }
    }

    async fn list(&mut self, token: Option<String>, reader: &mut dyn Reader) -> Result<Step, Error> {
        let params = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            limit: Some(PAGE),
            continue_token: token,
            ..ListParams::default()
        };
        let Self { collection, .. } = self;
        let request =
            if self.metadata { collection.list_metadata(&params) } else { collection.list(&params) };
        let text = self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await?;
        let page: Page<'_> = serde_json::from_str(&text)?;
        for object in page.items.iter().flatten() {
            reader.listed(object.get())?;
        }
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = said(page.metadata.r#continue) {
            self.state = State::Listing(Some(token));
            return Ok(Step::Told);
        }
        self.state = State::Listed(said(page.metadata.resource_version).ok_or(Error::NoVersion)?);
        Ok(Step::Listed)
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

/// The version that a watch has come to, none if it has to list again; and what the reader was told, if anything.
fn take_in(
    event: kube::Result<WatchEvent<Text>>,
    version: String,
    reader: &mut dyn Reader,
) -> (Option<String>, Option<Result<(), Error>>) {
    let mut changed =
        |object: &Text, is_there| Some(reader.changed(object.text.get(), is_there).map_err(Error::from));
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

/// A page of a list; its objects are parts of its text.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    /// Where only metadata is asked for, API servers write null for none.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

/// An object that a watch tells of.
#[derive(Clone)]
struct Text {
    version: String,
    text: Box<RawValue>,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Object { metadata } = serde_json::from_str(text.get()).map_err(de::Error::custom)?;
        Ok(Self { version: metadata.resource_version, text })
    }
}

#[cfg(test)]
mod tests;
