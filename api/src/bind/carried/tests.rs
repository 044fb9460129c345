use super::*;

fn mangos(change: impl FnOnce(&mut Value)) -> CustomResourceDefinitionSpec {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let mut spec = json!({
        "group": "provider.example.com", "scope": "Namespaced",
        "names": {"plural": "mangodbs", "kind": "MangoDB", "shortNames": ["mdb"]},
        "versions": [
            {"name": "v1alpha1", "served": false, "storage": false, "schema": {"openAPIV3Schema": schema}},
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Tier", "type": "string", "jsonPath": ".spec.tier"}]},
        ],
    });
    change(&mut spec);
    serde_json::from_value(spec).unwrap()
}

fn carried(crd: &CustomResourceDefinitionSpec, isolation: Isolation) -> Result<BoundSchemaSpec, NotCarried> {
    bound(crd, isolation, InformerScope::Namespaced).map(|(schema, _)| schema)
}

#[test]
fn a_crd_arrives_as_it_was() {
    let crd = mangos(|_| ());
    let schema = carried(&crd, Isolation::Prefixed).unwrap();
    let versions = schema.versions.iter().map(|version| (version.name.as_str(), version.served));
    let synced = synced(&schema.group, &schema.names, versions).unwrap();
    assert_eq!((&*synced.api_version, &*synced.plural), ("provider.example.com/v1", "mangodbs"));
    let arrived = installed(&serde_json::from_value(json!(schema)).unwrap()).unwrap();
    assert_eq!(arrived.metadata.name.as_deref(), Some("mangodbs.provider.example.com"));
    let mut want = crd;
    want.versions[0].subresources = Some(Default::default());
    assert_eq!(arrived.spec, want);
}

#[test]
fn a_schema_is_read_in_both_forms() {
    let mut schema = carried(&mangos(|_| ()), Isolation::None).unwrap();
    let whole = installed(&schema).unwrap();
    for version in &mut schema.versions {
        version.schema.0 = version.schema.0["openAPIV3Schema"].clone();
    }
    assert_eq!(installed(&schema).unwrap(), whole);
    schema.versions[1].schema.0 = json!({"openAPIV3Schema": 7});
    assert_eq!(installed(&schema), Err(NotCarried::Schema("v1".into())));
    schema.versions[1].schema.0 = json!({});
    assert_eq!(installed(&schema), Err(NotCarried::Schema("v1".into())));
}

#[test]
fn isolation_namespaced_makes_an_api_cluster_scoped() {
    let scope = |scope: &str, isolation| {
        carried(&mangos(|crd| crd["scope"] = json!(scope)), isolation).map(|schema| schema.scope)
    };
    assert_eq!(scope("Namespaced", Isolation::Namespaced), Ok(InformerScope::Cluster));
    assert_eq!(scope("Namespaced", Isolation::None), Ok(InformerScope::Namespaced));
    assert_eq!(scope("Cluster", Isolation::Prefixed), Ok(InformerScope::Cluster));
    assert_eq!(scope("Cluster", Isolation::Namespaced), Err(NotCarried::ClusterScoped));
}

#[test]
fn what_would_be_another_api_is_not_carried() {
    let refused = |change: fn(&mut Value)| carried(&mangos(change), Isolation::Prefixed).unwrap_err();
    assert_eq!(refused(|crd| crd["preserveUnknownFields"] = json!(true)), NotCarried::PreservesUnknownFields);
    assert_eq!(
        refused(|crd| {
            let client = json!({"service": {"namespace": "ops", "name": "convert"}});
            let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
            crd["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
        }),
        NotCarried::ConversionByService
    );
    let named = |name: &'static str| {
        carried(&mangos(|crd| crd["versions"][1]["name"] = json!(name)), Isolation::None)
    };
    for name in ["v2", "v10beta12"] {
        assert!(named(name).is_ok(), "{name}");
    }
    for name in ["stable", "v0", "v", "v1alpha", "v1alpha0", "v01", "v1-a1"] {
        assert_eq!(named(name), Err(NotCarried::Version(name.to_owned())));
    }
    let selectable =
        mangos(|crd| crd["versions"][1]["selectableFields"] = json!([{"jsonPath": ".spec.tier"}]));
    let (_, left_out) = bound(&selectable, Isolation::None, InformerScope::Cluster).unwrap();
    assert_eq!(left_out, ["selectableFields of version v1"]);
}

#[test]
fn a_webhook_that_has_an_address_is_carried_and_no_service_of_the_consumers() {
    let client = json!({"url": "https://convert.example.com", "caBundle": "Y2E="});
    let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
    let crd = mangos(|crd| crd["conversion"] = json!({"strategy": "Webhook", "webhook": webhook}));
    let schema = carried(&crd, Isolation::None).unwrap();
    assert_eq!(installed(&schema).unwrap().spec.conversion, crd.conversion);
    let mut foreign = json!(schema);
    foreign["conversion"]["webhook"]["clientConfig"]["service"] = json!({"namespace": "ops", "name": "x"});
    let foreign: BoundSchemaSpec = serde_json::from_value(foreign).unwrap();
    assert_eq!(installed(&foreign).unwrap().spec.conversion, crd.conversion);
}

#[test]
fn another_schema_has_another_hash() {
    let schema = carried(&mangos(|_| ()), Isolation::None).unwrap();
    let other = carried(&mangos(|crd| crd["versions"][0]["served"] = json!(true)), Isolation::None).unwrap();
    assert_eq!(hash([&schema]), hash([&schema.clone()]));
    assert!(hash([&schema]) != hash([&other]) && hash([&schema, &other]) != hash([&other, &schema]));
    assert_eq!(hash([&schema]).len(), 64);
}
