//! `apiVersion` of JSON that commands print, and of bundles. A field that was there once stays.

pub(crate) const API_VERSION: &str = "cli.freeport.dev/v1";
