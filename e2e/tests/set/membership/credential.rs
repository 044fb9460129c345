//! What proves a member to its leader is replaced while its session goes on, and what was replaced can be ended.

use std::{
    fs,
    time::{Duration, Instant},
};

use api::{
    cluster_set::CREDENTIAL_RENEWED,
    token::{Claims, Life},
};
use e2e::{
    account,
    cluster_set::status,
    fixture::{AREA, SET, SYSTEM, World, alone},
    say::say,
    seen::{event, imported, right},
    waiting::eventually,
};
use fleet::Component;
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::TokenRequest,
        authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
        core::v1::{ConfigMap, Secret, ServiceAccount},
        rbac::v1::{PolicyRule, Role},
    },
    jiff::{SignedDuration, Timestamp},
};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::traces::{EAST, SECRET, exchanged};

fn log(world: &World) -> String {
    fs::read_to_string(world.real().fleet.dir().join("logs").join(format!("{EAST}.log"))).unwrap()
}

/// How many sessions the daemon of `east` has begun.
fn sessions(world: &World) -> usize {
    log(world).matches("starting a session with the leader").count()
}

async fn secret_of_east(world: &World) -> (String, String) {
    let data = world.cluster("east").api::<Secret>(SYSTEM).get(SECRET).await.unwrap().data.unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    (text("token"), text("ca.crt"))
}

/// A token of the account of `east` that counts until its Secret is deleted.
async fn long_lived(world: &World) -> String {
    let annotations = json!({"kubernetes.io/service-account.name": EAST});
    let secret = json!({
        "metadata": {"name": "lasting", "annotations": annotations}, "type": "kubernetes.io/service-account-token",
    });
    let _: Secret = world.leader().create(AREA, secret).await;
    eventually("Kubernetes writes the token", || async {
        let secret = world.leader().api::<Secret>(AREA).get("lasting").await.unwrap();
        let token = secret.data.and_then(|mut data| data.remove("token")).ok_or("no token")?;
        Ok(String::from_utf8(token.0).unwrap())
    })
    .await
}

/// Whether the leader's API server takes the token.
async fn is_taken(world: &World, token: &str) -> Result<(), String> {
    let server = world.real().fleet.cluster("leader").unwrap().server();
    let (ca, _) = account::credential(world, "leader", AREA, "default").await;
    let client = account::client(&server, &ca, token).await;
    let attributes = ResourceAttributes { verb: Some("get".into()), ..ResourceAttributes::default() };
    let spec =
        SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews = Api::<SelfSubjectAccessReview>::all(client);
    reviews.create(&PostParams::default(), &review).await.map(drop).map_err(|error| error.to_string())
}

/// What the ClusterSet of `east` says of its token.
async fn said(world: &World) -> Result<(String, String), String> {
    let status = status(world.cluster("east"), SYSTEM).await?;
    let mut conditions = status.conditions.into_iter();
    let said = conditions.find(|condition| condition.type_.as_deref() == Some(CREDENTIAL_RENEWED));
    let said = said.ok_or("no condition")?;
    Ok((said.status.unwrap_or_default(), said.reason.unwrap_or_default()))
}

async fn says(world: &World, status: &str, reason: &str) {
    eventually(&format!("east says {status}/{reason} of its token"), || async {
        let said = said(world).await?;
        if said == (status.to_owned(), reason.to_owned()) { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
}

/// What is exported in the leader's cluster gets to `east`.
async fn goes_on(world: &World, ns: &str, service: &str) {
    world.leader().exported(ns, service, &["10.1.0.9"]).await;
    eventually(&format!("east imports {service}"), || async {
        let seen = imported(world.cluster("east"), ns, service).await;
        right(seen, |seen| seen.clusters.len() == 1).map(drop)
    })
    .await;
}

/// Puts the token into the Secret of `east`.
async fn put(world: &World, token: &str) {
    let data = json!({"data": {"token": ByteString(token.as_bytes().to_vec())}});
    world.cluster("east").patch::<Secret>(SYSTEM, SECRET, &data).await;
}

/// The life of the token of `east`, once it has one.
async fn replaced(world: &World) -> Life {
    eventually("the token is replaced", || async {
        let (token, _) = secret_of_east(world).await;
        let life = Claims::of(&token).and_then(|claims| claims.life);
        life.ok_or_else(|| format!("{:?}; its log:\n{}", Claims::of(&token), world.log_tail(EAST)))
    })
    .await
}

#[e2e::test(real)]
fn a_token_that_counts_for_ever_is_replaced_and_can_be_ended_while_the_session_goes_on() {
    alone(async |world| {
        let ns = "replaced";
        exchanged(world, ns).await;
        says(world, "True", "Renewed").await;
        let (sessions_before, lasting) = (sessions(world), long_lived(world).await);
        assert_eq!(Claims::of(&lasting).unwrap().life, None);
        let began = Instant::now();
        put(world, &lasting).await;
        let Life { issued, expires } = replaced(world).await;
        say(&format!(
            "a token that counts for ever was replaced after {:.1} s",
            began.elapsed().as_secs_f64()
        ));
        assert!(expires.duration_since(issued) <= SignedDuration::from_hours(25), "{issued} to {expires}");
        is_taken(world, &lasting).await.unwrap();
        world.leader().delete::<Secret>(AREA, "lasting").await;
        let deleted = Instant::now();
        eventually("what was replaced is refused", || async {
            match is_taken(world, &lasting).await {
                Err(why) if why.contains("Unauthorized") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        say(&format!(
            "a token is refused {:.1} s after its Secret was deleted",
            deleted.elapsed().as_secs_f64()
        ));
        goes_on(world, ns, "later").await;
        says(world, "True", "Renewed").await;
        let metric = "freeport_leader_credential_expiry_timestamp_seconds";
        let until = world.metrics(EAST).await.unwrap().sum(metric);
        assert!(until > Timestamp::now().as_second() as f64, "{until}");
        assert_eq!(sessions(world), sessions_before, "the session goes on:\n{}", world.log_tail(EAST));
        let log = log(world);
        let (token, _) = secret_of_east(world).await;
        assert!(!log.contains(&token) && !log.contains(&lasting), "a token in the log");
        world.release(ns).await;
    });
}

/// The rules of the Role of `east`, but for those on this resource.
fn rules_without(role: &Role, resource: &str) -> Value {
    let rules = role.rules.iter().flatten();
    let is_other =
        |rule: &&PolicyRule| rule.resources.as_deref().is_none_or(|resources| *resources != [resource]);
    json!({"rules": rules.filter(is_other).collect::<Vec<_>>()})
}

#[e2e::test(real)]
fn a_leader_that_lets_nobody_replace_tokens_is_said_and_the_token_goes_on() {
    alone(async |world| {
        let (ns, lasting) = ("lasting", long_lived(world).await);
        exchanged(world, ns).await;
        let role = world.leader().api::<Role>(AREA).get(EAST).await.unwrap();
        world.leader().patch::<Role>(AREA, EAST, &rules_without(&role, "serviceaccounts/token")).await;
        let server = world.real().fleet.cluster("leader").unwrap().server();
        let (ca, _) = account::credential(world, "leader", AREA, "default").await;
        let east = account::client(&server, &ca, &lasting).await;
        eventually("the right is gone", || async {
            let accounts = Api::<ServiceAccount>::namespaced(east.clone(), AREA);
            let (how, request) = (PostParams::default(), TokenRequest::default());
            if accounts.create_token_request(EAST, &how, &request).await.is_err() {
                Ok(())
            } else {
                Err("a token is given".to_owned())
            }
        })
        .await;
        put(world, &lasting).await;
        says(world, "False", "LongLived").await;
        eventually("an Event says so", || event(world.cluster("east"), SYSTEM, SET, "LongLived")).await;
        goes_on(world, ns, "later").await;
        assert_eq!(secret_of_east(world).await.0, lasting, "it stays");

        world.leader().patch::<Role>(AREA, EAST, &rules_without(&role, "none")).await;
        // A change of the Secret has it ask again; it may have done so before the right was known.
        eventually("the token is replaced", || async {
            let again = ByteString(format!("{:?}", Instant::now()).into_bytes());
            let data = json!({"data": {"again": again}});
            world.cluster("east").patch::<Secret>(SYSTEM, SECRET, &data).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            let (token, _) = secret_of_east(world).await;
            if token == lasting { Err(world.log_tail(EAST)) } else { Ok(()) }
        })
        .await;
        says(world, "True", "Renewed").await;
        world.leader().delete::<Secret>(AREA, "lasting").await;
        world.release(ns).await;
    });
}

/// Its API server has the certificate of the first one all the time, so that it stays trusted whatever is published.
#[e2e::test(real)]
fn authorities_that_the_leaders_cluster_publishes_are_trusted_beside_the_first_and_go_again() {
    alone(async |world| {
        let (ns, leader) = ("authorities", world.real().fleet.cluster("leader").unwrap());
        exchanged(world, ns).await;
        let sessions_before = sessions(world);
        let (_, first) = secret_of_east(world).await;
        let another =
            fs::read_to_string(world.real().fleet.cluster("west").unwrap().ca_certificate()).unwrap();
        // It would put back at once what is published.
        leader.kill(Component::ControllerManager).await.unwrap();
        let certificates = |pem: &str| pem.matches("BEGIN CERTIFICATE").count();
        let published = async |pem: &str, count: usize| {
            let data = json!({"data": {"ca.crt": pem}});
            world.leader().patch::<ConfigMap>(AREA, "kube-root-ca.crt", &data).await;
            eventually(&format!("east trusts {count}"), || async {
                let (_, trusted) = secret_of_east(world).await;
                let log = || format!("{trusted}\n{}", world.log_tail(EAST));
                if certificates(&trusted) == count { Ok(()) } else { Err(log()) }
            })
            .await;
        };
        published(&format!("{first}\n{another}"), certificates(&first) + 1).await;
        goes_on(world, ns, "meanwhile").await;
        assert_eq!(sessions(world), sessions_before, "the session goes on:\n{}", world.log_tail(EAST));
        published(&first, certificates(&first)).await;
        eventually("no connection stays that the other authority may have vouched for", || async {
            let begun = sessions(world) - sessions_before;
            if begun == 1 { Ok(()) } else { Err(format!("{begun}:\n{}", world.log_tail(EAST))) }
        })
        .await;
        goes_on(world, ns, "later").await;
        leader.start(Component::ControllerManager).await.unwrap();
        world.release(ns).await;
    });
}
