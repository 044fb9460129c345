//! What is kept of a list, and what the objects of a watch become.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::feed::Reader;
use crate::{
    index::Shared,
    objects::{Change, Streamed},
};

/// What is kept of a list while it is read: others may have put more into it than there is memory for.
pub trait Gather<P> {
    /// A list begins; what was read of another one is worth nothing.
    fn begin(&mut self);
    /// The next object of the list.
    fn take(&mut self, object: P);
    /// The list ends: what is kept of it.
    fn end(&mut self) -> Vec<P>;
}

/// All of it.
impl<P> Gather<P> for Vec<P> {
    fn begin(&mut self) {
        self.clear();
    }

    fn take(&mut self, object: P) {
        self.push(object);
    }

    fn end(&mut self) -> Vec<P> {
        std::mem::take(self)
    }
}

impl<P, G: Gather<P>> Gather<P> for Shared<G> {
    fn begin(&mut self) {
        self.with(|gather| gather.begin());
    }

    fn take(&mut self, object: P) {
        self.with(|gather| gather.take(object));
    }

    fn end(&mut self) -> Vec<P> {
        self.with(|gather| gather.end())
    }
}

/// Decodes what a watch tells, and hands it on: of a list what is kept of it.
pub(super) struct Decode<P, G, S> {
    list: G,
    sink: S,
    object: PhantomData<fn() -> P>,
}

impl<P, G: Gather<P>, S: FnMut(Change<P>)> Decode<P, G, S> {
    pub(super) fn new(list: G, sink: S) -> Self {
        Self { list, sink, object: PhantomData }
    }
}

impl<P, G, S> Reader for Decode<P, G, S>
where
    P: DeserializeOwned,
    G: Gather<P> + Send,
    S: FnMut(Change<P>) + Send,
{
    fn begin(&mut self) {
        self.list.begin();
    }

    fn listed(&mut self, object: &str) -> serde_json::Result<()> {
        self.list.take(serde_json::from_str(object)?);
        Ok(())
    }

    fn end(&mut self) {
        (self.sink)(Change::Reset(self.list.end()));
    }

    fn changed(&mut self, object: &str, is_there: bool) -> serde_json::Result<()> {
        (self.sink)(change(object, is_there)?);
        Ok(())
    }
}

/// Decodes what a watch tells, and hands it on object by object.
pub(super) struct Stream<P, S> {
    sink: S,
    object: PhantomData<fn() -> P>,
}

impl<P, S: FnMut(Streamed<P>)> Stream<P, S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink, object: PhantomData }
    }
}

impl<P: DeserializeOwned, S: FnMut(Streamed<P>) + Send> Reader for Stream<P, S> {
    fn begin(&mut self) {
        (self.sink)(Streamed::ListBegins);
    }

    fn listed(&mut self, object: &str) -> serde_json::Result<()> {
        self.changed(object, true)
    }

    fn end(&mut self) {
        (self.sink)(Streamed::ListEnds);
    }

    fn changed(&mut self, object: &str, is_there: bool) -> serde_json::Result<()> {
        (self.sink)(Streamed::Change(change(object, is_there)?));
        Ok(())
    }
}

fn change<P: DeserializeOwned>(object: &str, is_there: bool) -> serde_json::Result<Change<P>> {
    let object = serde_json::from_str(object)?;
    Ok(if is_there { Change::Apply(object) } else { Change::Remove(object) })
}
