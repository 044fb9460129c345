//! Objects outside of Namespaces. Rights are for all objects of the API there: the policy is all that keeps a consumer.

use serde_json::json;

use super::Two;
use crate::rights::{
    attempt::{Do, EVERYWHERE},
    bind::{Consumer, attempt, note, passes},
};

/// Of another consumer, and its own in another one's place.
pub(super) async fn anothers(two: &Two<'_>) {
    let far = two.far.api_resource();
    let (ours, theirs) = (format!("{}-one", two.us.cns), format!("{}-one", two.them.cns));
    let new = format!("{}-new", two.us.cns);
    let annotated = |mark| json!({"metadata": {"annotations": mark}});
    let gone = json!({"kube-bind.io/cluster-namespace": null});
    let held = json!({"metadata": {"finalizers": ["example.com/forever"]}});
    let (another, says) = ("it is of another consumer", "must have the annotation");
    two.refused(
        EVERYWHERE,
        &[
            attempt("without a prefix", &far, Do::Create(two.us.object("new")), "must be named kube-bind-"),
            attempt(
                "under their names",
                &far,
                Do::Create(two.us.object(&format!("{theirs}-2"))),
                "must be named",
            ),
            attempt("in their name", &far, Do::Create(two.them.object(&new)), says),
            attempt("in nobody's name", &far, Do::Create(json!({"metadata": {"name": new}})), says),
            attempt("patch theirs", &far, Do::Patch(theirs.clone(), note()), another),
            attempt("make theirs ours", &far, Do::Patch(theirs.clone(), annotated(two.us.mark())), another),
            attempt("replace theirs", &far, Do::Replace(theirs.clone(), note()), another),
            attempt("delete theirs", &far, Do::Delete(theirs.clone()), another),
            attempt("give ours away", &far, Do::Patch(ours.clone(), annotated(two.them.mark())), says),
            attempt("make ours nobody's", &far, Do::Patch(ours.clone(), annotated(gone)), says),
            attempt("hold ours for ever", &far, Do::Patch(ours.clone(), held), "must not get finalizers"),
            attempt("delete all", &far, Do::DeleteAll(String::new()), ""),
            attempt("our status", &far, Do::PatchStatus(ours, json!({"status": {"phase": "x"}})), ""),
            attempt("their status", &far, Do::PatchStatus(theirs, json!({"status": {"phase": "x"}})), ""),
        ],
    )
    .await;
}

/// Somebody at the provider takes the annotation off, or lets an object be adopted.
pub(super) async fn nobodys(two: &Two<'_>) {
    let (far, admin) = (two.far.api_resource(), &two.world.leader().client);
    let marked = |consumer: &Consumer| json!({"metadata": {"annotations": consumer.mark()}});
    let by_admin = async |todo: Do| todo.by(admin, EVERYWHERE, &far).await.unwrap();
    let gone = json!({"metadata": {"annotations": {"kube-bind.io/cluster-namespace": null}}});
    let mut names = Vec::new();
    for consumer in [&two.us, &two.them] {
        let name = format!("{}-applied", consumer.cns);
        consumer.apply(EVERYWHERE, &far, &name).await;
        by_admin(Do::Patch(name.clone(), gone.clone())).await;
        names.push(name);
    }
    let adopt = json!({"multicluster.freeport.dev/adopt": "true"});
    let (free, placed) = ("free-for-all".to_owned(), format!("{}-placed", two.us.cns));
    for name in [&free, &placed] {
        by_admin(Do::Create(json!({"metadata": {"name": name, "annotations": adopt}}))).await;
    }
    two.refused(
        EVERYWHERE,
        &[
            attempt(
                "what they lost",
                &far,
                Do::Patch(names[1].clone(), marked(&two.us)),
                "no consumer made it",
            ),
            attempt("delete what they lost", &far, Do::Delete(names[1].clone()), "no consumer made it"),
            attempt("what is not its place", &far, Do::Patch(free.clone(), marked(&two.us)), "must be named"),
        ],
    )
    .await;
    for name in [&names[0], &placed] {
        passes(&two.us.client, EVERYWHERE, &far, Do::Patch(name.clone(), marked(&two.us))).await;
    }
}
