//! In whatever order changes come.

use proptest::prelude::*;

use super::*;

proptest! {
    /// However events come, the same records give the same plan, and carrying it out leaves nothing to do.
    #[test]
    fn order_does_not_matter_and_a_second_pass_writes_nothing(
        slices in prop::collection::btree_map("[a-d]", 0..3usize, 0..4),
        order in any::<u64>(),
    ) {
        let exporters: Vec<&str> = slices.keys().map(String::as_str).collect();
        let import = json!({
            "metadata": {"name": name::service_import(&service()), "namespace": "cs", "resourceVersion": "1"},
            "spec": {"kind": "ServiceImport", "namespace": "shop", "name": "web",
                "serviceImport": {"spec": merged_import(&[]).spec.service_import.unwrap().spec},
                "exporters": merged_import(&exporters).spec.exporters},
        });
        let record = |(cluster, endpoints): (&String, &usize)| {
            let addresses: Vec<_> = (0..*endpoints).map(|n| format!("10.0.0.{n}")).collect();
            let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
            json!({
                "metadata": {"name": record(cluster), "namespace": "cs", "resourceVersion": "1",
                    "labels": {"sourceClusterID": cluster, "sourceNamespace": "shop", "sourceName": "web"}},
                "spec": {"kind": "EndpointSlice", "clusterID": cluster, "namespace": "shop", "name": "web",
                    "endpointSlice": payload(&addresses)},
            })
        };
        let records: Vec<_> = slices.iter().map(record).collect();
        let indexed = |mut records: Vec<serde_json::Value>, import_first: bool| {
            let mut index = Index::<ServiceName, ServiceEntry>::default();
            let import = || Change::Apply(serde_json::from_value::<LeaderImport>(import.clone()).unwrap());
            if import_first { index.change(import()); }
            for record in records.drain(..) {
                index.change(Change::Apply(serde_json::from_value::<PeerSlice>(record).unwrap()));
            }
            if !import_first { index.change(import()); }
            index.get(&service()).cloned().unwrap_or_default()
        };
        let mut shuffled = records.clone();
        if !shuffled.is_empty() { let by = (order as usize) % shuffled.len(); shuffled.rotate_left(by); }
        let entry = indexed(records, true);
        prop_assert_eq!(plan("west", &indexed(shuffled, order % 2 == 0)), plan("west", &entry));

        let settled = carried_out("west", (*entry).clone());
        prop_assert_eq!(carried_out("west", settled.clone()), settled);
    }
}
