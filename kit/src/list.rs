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
    let (mut all, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = api.list(&params).await?;
        all.extend(page.items.into_iter().map(&keep));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(all);
        }
    }
}
