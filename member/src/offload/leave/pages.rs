//! Records in a Common Area, page by page, as far as there are any for us.

use std::fmt::Debug;

use kit::{
    failure::{Failure, classify},
    list::Pages,
};
use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

/// What is still to be read of a list.
pub(super) struct Records<K>(Pages<K>);

impl<K: Clone + DeserializeOwned + Debug> Records<K> {
    /// The records that these parameters select.
    pub(super) fn of(api: &Api<K>, which: ListParams) -> Self {
        Self(Pages::of(api.clone(), which))
    }

    /// The next page. Where the kind is not there, or not for us, there is none. A list that has become too old ends: what is left is
    /// found by the next one.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<K>>, Failure> {
        match self.0.next().await {
            Ok(page) => Ok(page),
            Err(kube::Error::Api(status)) if status.code == 410 => Ok(None),
            Err(error) => match classify(&error) {
                Failure::KindMissing | Failure::Forbidden(_) => Ok(None),
                failure => Err(failure),
            },
        }
    }
}
