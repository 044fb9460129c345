//! A list that is read once and not watched, in pages: others may have put more there than an API server sends, or we decode, at once.

use std::fmt::Debug;

use api::view::Meta;
use kube::{Api, Resource, api::ListParams};
use serde::de::DeserializeOwned;

/// Objects of a page: of each its metadata alone are sent, which may still have a megabyte.
const PAGE: u32 = 50;

/// What `keep` makes of the metadata of each object.
pub async fn metadata<K, T>(api: &Api<Meta<K>>, keep: impl Fn(Meta<K>) -> T) -> kube::Result<Vec<T>>
where
    K: Resource,
    Meta<K>: Resource + Clone + DeserializeOwned + Debug,
{
    let (mut all, mut pages) = (Vec::new(), Pages::new(api.clone()));
    while let Some(page) = pages.next().await? {
        all.extend(page.into_iter().map(&keep));
    }
    Ok(all)
}

/// The same, for who needs no more than one page at a time.
pub struct Pages<K> {
    api: Api<Meta<K>>,
    /// How the next one is asked for, unless it was the last.
    next: Option<ListParams>,
}

impl<K> Pages<K>
where
    K: Resource,
    Meta<K>: Resource + Clone + DeserializeOwned + Debug,
{
    /// Of all objects.
    pub fn new(api: Api<Meta<K>>) -> Self {
        Self { api, next: Some(ListParams::default().limit(PAGE)) }
    }

    /// The next page.
    pub async fn next(&mut self) -> kube::Result<Option<Vec<Meta<K>>>> {
        let Some(params) = self.next.take() else { return Ok(None) };
        let page = self.api.list(&params).await?;
        let more = page.metadata.continue_.filter(|token| !token.is_empty());
        self.next = more.map(|token| ListParams { continue_token: Some(token), ..params });
        Ok(Some(page.items))
    }
}
