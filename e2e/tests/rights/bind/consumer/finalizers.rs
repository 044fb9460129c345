//! Finalizers of what a consumer asks for. With one of its own its cluster namespace could never go; without the leader's nobody would delete what
//! was made for it.

use api::bind::{
    export::{APIServiceExportRequest, APIServiceNamespace},
    label::BIND_FINALIZER,
};
use serde_json::json;

use super::{Two, kind};
use crate::rights::{
    attempt::Do,
    bind::{attempt, until_refused},
};

/// It adds none and takes none off.
pub(super) async fn kept(two: &Two<'_>) {
    let (space, ask) = (kind::<APIServiceNamespace>(), kind::<APIServiceExportRequest>());
    let held = |by: &[&str]| json!({"metadata": {"finalizers": by}});
    let new = |by: &str| json!({"metadata": {"name": "held", "finalizers": [by]}, "spec": {"resources": [{"group": "more.example.com", "resource": "things"}]}});
    let (team, ours) = (|| "team".to_owned(), BIND_FINALIZER);
    let (adds, takes) = ("must not get finalizers", "must not lose finalizers");
    let first = Do::DryCreate(new("example.com/forever"));
    until_refused(&two.us.client, &two.us.cns, &space, first, adds).await;
    two.refused(
        &two.us.cns,
        &[
            attempt("a Namespace that stays", &space, Do::Create(new("kubebind.io/syncer")), adds),
            attempt("one that seems to be seen", &space, Do::Create(new(ours)), adds),
            attempt("a request that stays", &ask, Do::Create(new("example.com/forever")), adds),
            attempt("a request that nobody lets go", &ask, Do::Create(new(ours)), adds),
            attempt("hold a Namespace", &space, Do::Patch(team(), held(&[ours, "x.example.com/y"])), adds),
            attempt("replace the leader's", &space, Do::Replace(team(), held(&["x.example.com/y"])), adds),
            attempt("take the leader's off", &space, Do::Patch(team(), held(&[])), takes),
            attempt("put a Namespace without it", &space, Do::Replace(team(), held(&[])), takes),
        ],
    )
    .await;
}
