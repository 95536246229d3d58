//! A gRPC-Web client of other people against a real process: so that our pair does not only agree with itself.

use std::process::Command;

use serde_json::{json, Value};

use crate::common::{fresh_directory, Provider};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/backend/foreign.mjs");
const DESCRIPTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../streaming/src/generated/xmtp_backend_v1.binpb");

fn ask(scenario: &str, arguments: &[&str]) -> Value {
    let data = fresh_directory(&format!("foreign-{scenario}"));
    let provider = Provider::start(&data, arguments);
    let url = format!("http://{}", provider.address);
    let output = Command::new("node").args([CLIENT, &url, DESCRIPTORS, scenario]).output();
    let output = output.expect("Node.js, which `cargo xtask setup` finds");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the client failed (are the npm packages there? `cargo xtask setup`): {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_client_of_other_people_publishes_queries_and_subscribes() {
    let saw = ask("honest", &["--backend-keepalive-ms", "300", "--backend-gap", "3"]);
    let places: Vec<_> =
        saw["places"].as_array().expect("places").iter().map(|place| place.as_u64().unwrap()).collect();
    assert_eq!(places.len(), 4);
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
    assert_eq!(saw["refused"], json!({ "code": "InvalidArgument", "index": 1, "reason": 1 }));
    assert_eq!(saw["page"], json!({ "rows": ["two"], "hasMore": true }));
    assert_eq!(saw["newest"], json!([[places[2], "three"]]));
    assert_eq!(saw["hash"], 32);
    assert_eq!(
        saw["seen"],
        json!([
            ["started", [places[2]]],
            ["row", "one"],
            ["row", "two"],
            ["row", "three"],
            ["row", "four"],
            ["keepalive"]
        ])
    );
}

#[test]
fn a_client_of_other_people_meets_the_faults_that_it_can_tell() {
    let faults = ["--backend-fault", "headers-only-error", "--backend-fault", "end-without-trailers"];
    let ends = ask("faulty", &faults);
    assert_eq!(ends[0], json!([[], "Unavailable"]));
    assert_eq!(ends[1][0], json!(["started"]));
    assert_ne!(ends[1][1], "clean", "a body without trailers is no clean end");
}
