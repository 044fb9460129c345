//! Records in a Common Area, page by page: others may have written more than there is memory for.

use std::fmt::Debug;

use kit::failure::{Failure, classify};
use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

/// Records of a page. One may have more than a megabyte.
const PAGE: u32 = 50;

/// What is still to be read of a list.
pub(super) struct Pages<'a, K> {
    api: &'a Api<K>,
    /// Nothing when all of it was read.
    next: Option<ListParams>,
}

impl<'a, K: Clone + DeserializeOwned + Debug> Pages<'a, K> {
    /// The records that these parameters select.
    pub(super) fn of(api: &'a Api<K>, which: &ListParams) -> Self {
        Self { api, next: Some(which.clone().limit(PAGE)) }
    }

    /// The next page. Where the kind is not there, or not for us, there is none. A list that has become too old ends: what is left is
    /// found by the next one.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<K>>, Failure> {
        let Some(which) = self.next.take() else { return Ok(None) };
        match self.api.list(&which).await {
            Ok(list) => {
                let token = list.metadata.continue_.filter(|token| !token.is_empty());
                self.next = token.map(|token| which.continue_token(&token));
                Ok(Some(list.items))
            }
            Err(kube::Error::Api(status)) if status.code == 410 => Ok(None),
            Err(error) => match classify(&error) {
                Failure::KindMissing | Failure::Forbidden(_) => Ok(None),
                failure => Err(failure),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, client::Body};
    use serde_json::json;

    use super::*;

    /// Answers lists of three pages, the last of which is empty.
    fn api() -> Api<ConfigMap> {
        let answer = async |request: http::Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            assert!(query.contains("limit=50"), "{query}");
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
        let api = api();
        let mut pages = Pages::of(&api, &ListParams::default());
        let mut read = Vec::new();
        while let Some(page) = pages.next().await.unwrap() {
            read.push(page.len());
        }
        assert_eq!(read, [2, 1, 0]);
    }
}
