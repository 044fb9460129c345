//! The tests of the gate: what `cargo test --workspace` runs of the whole-system tests, at most [`MOST`].
//!
//! They show what only real programs can show, each main path once, chosen by what users lose when it breaks: for each feature the way there and
//! back, a conflict, a restart, something that vanishes, a refusal; each command; who may do what. All others run with `bash .ci/run all`. Tests on the
//! simulated ground are in the gate besides; where one of them shows a path as well as real programs do, none is listed here.

/// So many at most: on two cores the gate takes a quarter of an hour.
pub const MOST: usize = 90;

/// Tests, or folders of them (which end with `::`), and why they are in the gate.
pub const GATE: &[(&str, &str)] = &[
    ("rights::", "what an API server lets pass; no daemon runs, so all of them are quick"),
    (
        "model::the_model_answers_as_an_api_server_does_but_for_what_is_listed",
        "the API server that simulations run against",
    ),
    // Services.
    (
        "set::service::export::r3_r18_r21_r51_r55_an_export_appears_in_every_cluster_and_goes_everywhere",
        "an export, there and back",
    ),
    ("set::service::refused::r24_a_quota_that_leaves_no_room_is_said_and_room_is_used", "a refusal"),
    (
        "set::schema::r78_an_export_written_as_v1beta1_is_read_as_v1alpha1_and_its_import_is_served_as_both",
        "both versions",
    ),
    // Belonging to a ClusterSet.
    ("set::membership::failure::a_leader_that_is_away_is_said_and_found_again", "a link that is lost"),
    (
        "set::membership::leave::r60_a_cluster_set_that_is_deleted_is_left_and_one_created_again_is_joined",
        "leaving",
    ),
    ("set::replicas::of_several_replicas_one_writes_and_another_takes_its_place", "several replicas"),
    ("set::antrea::an_antrea_member_exports_imports_and_withdraws", "a member of Antrea's"),
    ("set::antrea_leader::a_member_of_ours_takes_part_under_an_antrea_leader", "a leader of Antrea's"),
    // Offloading.
    (
        "set::offload::round::a_namespace_gets_its_twin_in_a_selected_cluster_and_loses_it_again",
        "a twin, there and back",
    ),
    ("set::offload::pods::a_pod_runs_at_its_host_and_says_so_at_home", "a Pod, there and back"),
    ("set::offload_webhook::a_new_pod_is_placed_as_its_namespace_says", "the webhook"),
    // API binding.
    ("bind::konnector::b1_an_api_is_installed_specs_go_up_and_statuses_come_down", "there and back"),
    (
        "bind::konnector::b7_m8_a_foreign_crd_is_left_alone_and_what_cannot_go_up_is_said",
        "a CRD of somebody else",
    ),
    ("bind::whole::b1_from_a_request_to_a_status_and_back_to_nothing", "a request"),
    ("bind::refused::what_the_consumers_own_api_server_refuses_is_said_there_and_done_later", "a refusal"),
    ("bind::quiet::a_settled_contract_writes_heartbeats_alone_and_a_restart_nothing", "a restart"),
    ("bind::go::gos_konnector_works_with_our_provider_and_ours_takes_over_from_it", "kube-bind's konnector"),
    // Commands.
    ("bind::commands::from_a_provider_to_a_status_and_back_by_commands", "`freeport bind`"),
    ("cli::pair::a_pair_from_nothing", "`init`, `join`, `status`"),
    ("cli::dns::names_are_given_and_taken_back_to_the_byte", "`dns`"),
    ("cli::leave::who_leaves_and_uninstalls_has_what_was_there_before", "`leave`"),
    (
        "cli::revoke::a_member_that_is_revoked_is_out_within_seconds_keeps_its_imports_and_may_join_again",
        "`revoke`",
    ),
    ("set::vanish::rejoin::a_new_leader_binds_all_imports_again_with_their_addresses", "`rejoin`"),
    // On nodes; the quickstart is a step of `.ci/run`.
    ("pods::traffic::r49_a_service_of_one_cluster_answers_in_all", "traffic by address"),
    ("pods::dns::r63_r64_r65_r66_names_of_an_import_with_addresses", "traffic by name"),
    (
        "pods::offload::a_deployment_runs_in_another_cluster_by_the_commands_of_the_docs",
        "`offload`, and a Deployment",
    ),
];

/// Why a test is in the gate; none if it is not.
pub fn reason(test: &str) -> Option<&'static str> {
    GATE.iter().find(|(entry, _)| is_of(entry, test)).map(|(_, reason)| *reason)
}

/// Whether an entry of the gate is this test, or a folder that has it.
pub fn is_of(entry: &str, test: &str) -> bool {
    if entry.ends_with("::") { test.starts_with(entry) } else { test == entry }
}
