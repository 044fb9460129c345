use serde_json::json;

use super::*;

#[test]
fn it_is_asked_by_service_and_by_url() {
    let service = [
        "freeport-webhook.freeport-system.svc",
        "freeport-webhook.freeport-system.svc.cluster.local",
        "freeport-webhook.freeport-system",
        "freeport-webhook",
    ];
    assert_eq!(names("freeport-system", None), service);
    for (url, host) in [
        ("https://127.0.0.1:8443/mutate/pod", "127.0.0.1"),
        ("https://[fd00::1]:8443/mutate/pod", "fd00::1"),
        ("https://webhook.example.com/mutate/pod", "webhook.example.com"),
    ] {
        assert_eq!(names("freeport-system", Some(url)).last().unwrap(), host);
    }
    assert_eq!(names("freeport-system", Some("odd url")), service);
    assert_eq!(names("freeport-system", Some("https://odd..host/")), service);
}

#[test]
fn one_field_of_one_webhook_is_ours() {
    let other = json!({"name": "other.example.com", "clientConfig": {"caBundle": "b2xk"}, "odd": true});
    let ours =
        json!({"name": "pod.mutate.liqo.io", "clientConfig": {"url": "https://x/"}, "timeoutSeconds": 3});
    let configuration =
        json!({"metadata": {"name": NAME, "resourceVersion": "1"}, "webhooks": [other, ours]});
    let configuration: Configuration = serde_json::from_value(configuration).unwrap();
    assert_eq!(configuration.bundle(), b"");
    let trusting = configuration.trusting(b"new");
    assert_eq!(trusting.bundle(), b"new");
    let mut want = json!([other, ours]);
    want[1]["clientConfig"]["caBundle"] = json!("bmV3");
    assert_eq!(json!(trusting)["webhooks"], want);
    let odd = json!({"metadata": {"name": NAME}, "webhooks": [{"name": "pod.mutate.liqo.io", "clientConfig": 7}, 7]});
    let odd: Configuration = serde_json::from_value(odd).unwrap();
    assert_eq!(odd.trusting(b"new"), odd);
}
