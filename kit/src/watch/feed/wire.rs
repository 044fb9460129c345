//! Lists and events as API servers write them, with objects as text.

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

/// A page of a list; its objects are parts of its text.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: PageMetadata,
    /// Where only metadata is asked for, API servers write null for none.
    #[serde(borrow)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// A list, whatever it has.
#[derive(Deserialize)]
pub(super) struct Head {
    #[serde(default)]
    pub(super) metadata: PageMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    pub(super) resource_version: Option<String>,
    pub(super) r#continue: Option<String>,
}

/// An object that a watch tells of.
#[derive(Clone)]
pub(super) struct Text {
    pub(super) version: String,
    pub(super) text: Box<RawValue>,
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
