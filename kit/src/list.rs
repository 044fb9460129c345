//! A list that is read once and not watched, in pages: others may have put more there than an API server sends, or we decode, at once.

use std::fmt::Debug;

use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

/// Objects of a page. One may have more than a megabyte, its metadata alone, too.
const PAGE: u32 = 50;

/// What `keep` makes of each object that is selected.
pub async fn all<V, T>(api: &Api<V>, which: ListParams, keep: impl Fn(V) -> T) -> kube::Result<Vec<T>>
where
    V: Clone + DeserializeOwned + Debug,
{
    let (mut all, mut pages) = (Vec::new(), Pages::of(api.clone(), which));
    while let Some(page) = pages.next().await? {
        all.extend(page.into_iter().map(&keep));
    }
    Ok(all)
}

/// The same, for who needs no more than one page at a time.
pub struct Pages<V> {
    api: Api<V>,
    /// How the next one is asked for, unless it was the last.
    next: Option<ListParams>,
}

impl<V: Clone + DeserializeOwned + Debug> Pages<V> {
    /// Of the objects that are selected.
    pub fn of(api: Api<V>, which: ListParams) -> Self {
        Self { api, next: Some(which.limit(PAGE)) }
    }

    /// The next page.
    pub async fn next(&mut self) -> kube::Result<Option<Vec<V>>> {
        let Some(params) = self.next.take() else { return Ok(None) };
        let page = self.api.list(&params).await?;
        let more = page.metadata.continue_.filter(|token| !token.is_empty());
        self.next = more.map(|token| params.continue_token(&token));
        Ok(Some(page.items))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, ResourceExt, client::Body};
    use serde_json::json;

    use super::*;

    /// Answers lists of three pages, the last of which is empty.
    fn api() -> Api<ConfigMap> {
        let answer = async |request: http::Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            assert!(query.contains("limit=50") && query.contains("labelSelector=l"), "{query}");
            let (names, token) = match () {
                () if query.contains("continue=b") => (&[][..], ""),
                () if query.contains("continue=a") => (&["z"][..], "b"),
                () => (&["x", "y"][..], "a"),
            };
            let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
            let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": token}, "items": items});
            let body = Body::from(list.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        };
        Api::namespaced(Client::new(tower::service_fn(answer), "x"), "x")
    }

    #[tokio::test]
    async fn all_pages_are_read_one_after_the_other() {
        let read = all(&api(), ListParams::default().labels("l"), |map| map.name_any()).await.unwrap();
        assert_eq!(read, ["x", "y", "z"]);
    }
}
