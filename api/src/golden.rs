//! Golden JSON: what travels reads and writes to the letter.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The golden object of a file.
macro_rules! golden {
    ($file:literal) => {
        $crate::golden::exactly(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/golden/",
            $file,
            ".json"
        )))
    };
}
pub(crate) use golden;

/// Decodes the golden object and demands that encoding gives back exactly the same JSON.
pub(crate) fn exactly<K: DeserializeOwned + Serialize>(text: &str) -> K {
    let want: Value = serde_json::from_str(text).unwrap();
    let object: K = serde_json::from_value(want.clone()).unwrap();
    assert_eq!(serde_json::to_value(&object).unwrap(), want);
    object
}
