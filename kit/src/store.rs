//! What a feature knows: an [`Index`], and the queues of the controllers that read it.
//!
//! A change enqueues its key for the controllers that read what changed, and for no others. A controller writes through the
//! store, so that the API server's answer enters the index at once and the controller does not reconcile for its own write.

use std::{fmt::Debug, hash::Hash, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    index::{Dirty, Entry, Index, Part, Readers, Shared},
    objects::{Change, ObjectName, Streamed, name},
    queue::{Party, Queue},
    write::{Error, Writer},
};

/// An index and its queues. Cloning shares it.
pub struct Store<K, E> {
    index: Shared<Index<K, E>>,
    /// The queue of the controller `Readers::one(n)` is the n-th.
    queues: Arc<[Queue<K>]>,
    /// Other keys whose entries depend on that of a key.
    related: fn(&K) -> Vec<K>,
}

impl<K, E> Clone for Store<K, E> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), queues: self.queues.clone(), related: self.related }
    }
}

impl<K: Clone + Eq + Hash + Ord, E: Entry> Store<K, E> {
    /// An empty store of controllers with these queues, eight at the most.
    pub fn new(queues: impl IntoIterator<Item = Queue<K>>) -> Self {
        Self { index: Shared::default(), queues: queues.into_iter().collect(), related: |_| Vec::new() }
    }

    /// A change of a key is one of these other keys too, where something is known about them.
    pub fn with_related(self, related: fn(&K) -> Vec<K>) -> Self {
        Self { related, ..self }
    }

    /// The entry of a key, if anything is known about it.
    pub fn get(&self, key: &K) -> Option<Arc<E>> {
        self.index.with(|index| index.get(key).cloned())
    }

    /// All keys something is known about that matters.
    pub fn keys(&self) -> Vec<K> {
        self.index.with(|index| index.keys().cloned().collect())
    }

    /// Number of objects of one kind.
    pub fn count<P: Part<K, E>>(&self) -> usize {
        self.index.with(|index| index.count::<P>())
    }

    /// Notes in an entry what no watch tells. Enqueues nothing.
    pub fn note(&self, key: &K, note: impl FnOnce(&mut E)) {
        self.index.with(|index| index.note(key, note));
    }

    /// Takes in what a watch told.
    pub fn change<P: Part<K, E>>(&self, change: Change<P>) {
        self.enqueue(self.index.with(|index| index.change(change)));
    }

    /// Takes in what a watch of many objects told.
    pub fn stream<P: Part<K, E>>(&self, streamed: Streamed<P>) {
        self.enqueue(self.index.with(|index| index.stream(streamed)));
    }

    /// Reads an object that its entry does not have though the watch told of it, and takes it in unless the watch tells more by then.
    pub async fn read<P: Part<K, E>>(
        &self,
        request: impl Future<Output = Result<Option<P>, Error>>,
    ) -> Result<(), Error> {
        let lists = self.index.with(Index::lists::<P>);
        if let Some(object) = request.await? {
            self.enqueue(self.index.with(|index| index.read(object, lists)));
        }
        Ok(())
    }

    /// Takes in what one of several watches of a kind listed: see [`Index::listed_within`].
    pub fn listed_within<P: Part<K, E>>(&self, within: impl Fn(&ObjectName) -> bool, objects: Vec<P>) {
        self.enqueue(self.index.with(|index| index.listed_within(within, objects)));
    }

    /// The queue of a controller.
    pub fn queue(&self, number: u8) -> Queue<K> {
        self.queues[usize::from(number)].clone()
    }

    /// Asks these controllers to reconcile these keys.
    pub fn enqueue(&self, dirty: Dirty<K>) {
        // Their entries may change in other ways.
        let related: Vec<_> = dirty.keys().flat_map(self.related).map(|key| (key, Readers::ALL)).collect();
        let related = related.into_iter().filter(|(key, _)| self.get(key).is_some());
        let all: Vec<_> =
            related.chain(dirty).map(|(key, readers)| (self.party(&key), key, readers)).collect();
        for (number, queue) in (0..).zip(self.queues.iter()) {
            let reader = Readers::one(number);
            let read = all.iter().filter(|(_, _, readers)| readers.has(reader));
            queue.enqueue_of(read.map(|(party, key, _)| (key.clone(), *party)));
        }
    }

    fn party(&self, key: &K) -> Party {
        self.index.with(|index| index.get(key).map_or(Party::NOBODY, |entry| entry.party()))
    }

    /// Asks these controllers to reconcile all that is known and matters.
    pub fn enqueue_all(&self, readers: Readers) {
        self.enqueue(self.keys().into_iter().map(|key| (key, readers)).collect());
    }

    /// What kept reconciles from working may be over: every key whose last reconcile failed is tried again.
    pub fn retry_failed(&self) {
        self.queues.iter().for_each(Queue::retry_failed);
    }

    /// Keys that these controllers have something to do about, or that failed and wait for another try.
    pub fn busy(&self, readers: Readers) -> Vec<K> {
        let queues = (0..).zip(self.queues.iter()).filter(|(number, _)| readers.has(Readers::one(*number)));
        queues.flat_map(|(_, queue)| queue.busy()).collect()
    }

    /// Makes `want` so for the controller `by`, given that the index had `have`: see [`Writer::put`].
    pub async fn put<P>(
        &self,
        writer: &Writer<P::DynamicType>,
        by: Readers,
        have: Option<&P>,
        want: &P,
    ) -> Result<Option<P>, Error>
    where
        P: Part<K, E> + Serialize + DeserializeOwned + Clone + Debug,
    {
        let write = Write::<K, E, P>::begin(self, name(want), by);
        let answer = writer.put(have, want).await?;
        if let Some(answer) = answer.clone() {
            write.written(answer);
        }
        Ok(answer)
    }

    /// [`put`](Self::put), which also finds an object that no watch told of and that `is_ours`: see [`Writer::adopt`].
    pub async fn put_ours<P>(
        &self,
        writer: &Writer<P::DynamicType>,
        by: Readers,
        (have, want): (Option<&P>, &P),
        is_ours: impl FnOnce(&P) -> bool,
    ) -> Result<Option<P>, Error>
    where
        P: Part<K, E> + Serialize + DeserializeOwned + Clone + Debug,
    {
        match self.put(writer, by, have, want).await {
            Err(Error::Stale) if have.is_none() => {
                self.write(by, want, writer.adopt(want, is_ours)).await.map(Some)
            }
            put => put,
        }
    }

    /// Applies `status` to the object `of` for the controller `by`: see [`Writer::put_status`].
    pub async fn put_status<P, S>(
        &self,
        writer: &Writer<P::DynamicType>,
        by: Readers,
        of: &P,
        status: &S,
    ) -> Result<P, Error>
    where
        P: Part<K, E> + DeserializeOwned + Clone,
        S: Serialize,
    {
        self.write(by, of, writer.put_status(of, status)).await
    }

    /// Sends a request of the controller `by` that writes `object`, and takes in the answer: where another view is written than
    /// the index holds.
    pub async fn write<P>(
        &self,
        by: Readers,
        object: &P,
        request: impl Future<Output = Result<P, Error>>,
    ) -> Result<P, Error>
    where
        P: Part<K, E> + Clone,
    {
        let write = Write::<K, E, P>::begin(self, name(object), by);
        let answer = request.await?;
        write.written(answer.clone());
        Ok(answer)
    }

    /// Deletes the object for the controller `by`: see [`Writer::delete`].
    pub async fn delete<P>(
        &self,
        writer: &Writer<P::DynamicType>,
        by: Readers,
        object: &P,
        unchanged: bool,
    ) -> Result<(), Error>
    where
        P: Part<K, E>,
    {
        let write = Write::<K, E, P>::begin(self, name(object), by);
        writer.delete(object, unchanged).await?;
        write.deleted(object);
        Ok(())
    }

    /// Takes in that the API server deleted `object`, or let go of it, at the request of the controller `by`.
    pub fn deleted<P: Part<K, E>>(&self, by: Readers, object: &P) {
        Write::<K, E, P>::begin(self, name(object), by).deleted(object);
    }
}

/// A write under way. Without an answer, also when its reconcile is dropped, it ends as one that failed.
struct Write<'a, K: Clone + Eq + Hash + Ord, E: Entry, P: Part<K, E>> {
    store: &'a Store<K, E>,
    name: ObjectName,
    /// Its answer was taken in.
    answered: bool,
    kind: std::marker::PhantomData<fn() -> P>,
}

impl<'a, K: Clone + Eq + Hash + Ord, E: Entry, P: Part<K, E>> Write<'a, K, E, P> {
    fn begin(store: &'a Store<K, E>, name: ObjectName, by: Readers) -> Self {
        store.index.with(|index| index.writing::<P>(name.clone(), by));
        Self { store, name, answered: false, kind: std::marker::PhantomData }
    }

    fn written(mut self, answer: P) {
        self.answered = true;
        self.store.enqueue(self.store.index.with(|index| index.written(answer)));
    }

    fn deleted(mut self, object: &P) {
        self.answered = true;
        self.store.enqueue(self.store.index.with(|index| index.deleted(object)));
    }
}

impl<K: Clone + Eq + Hash + Ord, E: Entry, P: Part<K, E>> Drop for Write<'_, K, E, P> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        self.store.enqueue(self.store.index.with(|index| index.unwritten::<P>(&self.name)));
    }
}
