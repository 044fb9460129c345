use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kit::objects::Change;

use super::*;
use crate::feature::proof::{CopiesRun, access, features};

#[test]
fn a_feature_is_named_with_what_it_cannot_watch() {}
