//! What is kept of a list, and what the objects of a watch become.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::feed::Reader;
use crate::{index::Shared, objects::Change};

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

/// Decodes what a watch tells, and hands it on.
pub(super) struct Decode<P, G, S> {
    list: G,
    sink: S,
    /// Whether the objects of this list are told as they come.
    one_by_one: bool,
    object: PhantomData<fn() -> P>,
}

impl<P, G: Gather<P>, S: FnMut(Change<P>)> Decode<P, G, S> {
    /// `one_by_one`: the first list is told object by object.
    pub(super) fn new(list: G, sink: S, one_by_one: bool) -> Self {
        Self { list, sink, one_by_one, object: PhantomData }
    }
}

impl<P, G, S> Reader for Decode<P, G, S>
where
    P: DeserializeOwned,
    G: Gather<P> + Send,
    S: FnMut(Change<P>) + Send,
{
    fn begin(&mut self) {
        match self.one_by_one {
            // What was told of a list that broke off goes.
            true => (self.sink)(Change::Reset(Vec::new())),
            false => self.list.begin(),
        }
    }

    fn listed(&mut self, object: &str) -> serde_json::Result<()> {
        let object = serde_json::from_str(object)?;
        match self.one_by_one {
            true => (self.sink)(Change::Apply(object)),
            false => self.list.take(object),
        }
        Ok(())
    }

    fn end(&mut self) {
        if !std::mem::take(&mut self.one_by_one) {
            (self.sink)(Change::Reset(self.list.end()));
        }
    }

    fn changed(&mut self, object: &str, is_there: bool) -> serde_json::Result<()> {
        let object = serde_json::from_str(object)?;
        (self.sink)(if is_there { Change::Apply(object) } else { Change::Remove(object) });
        Ok(())
    }
}
