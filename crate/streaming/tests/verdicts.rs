//! The table of this plane in `spec/VERDICTS.md` and the code are one, and every code has a reject vector.

use std::collections::BTreeSet;

use remuda_streaming::StreamRefused;
use serde_json::Value;

fn read(name: &str) -> String {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Code, section, meaning, remedy of every row of this plane.
fn documented() -> Vec<[String; 4]> {
    let rows = read("spec/VERDICTS.md");
    let rows = rows.lines().filter(|line| line.starts_with("| `streaming/"));
    rows.map(|line| {
        let mut cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', ""));
        [(); 4].map(|()| cells.next().expect("four cells"))
    })
    .collect()
}

#[test]
fn the_table_and_the_code_are_one() {
    let codes: Vec<_> = documented().into_iter().map(|[code, ..]| code).collect();
    assert_eq!(StreamRefused::ALL.iter().map(|verdict| verdict.code()).collect::<Vec<_>>(), codes);
    for (verdict, [code, section, meaning, remedy]) in StreamRefused::ALL.iter().zip(documented()) {
        assert_eq!(verdict.section(), section, "section of {code}");
        assert_eq!(verdict.remedy().name(), remedy, "remedy of {code}");
        // The table may explain more than a sentence for people says.
        assert!(meaning.starts_with(verdict.meaning()), "meaning of {code}: {} / {meaning}", verdict.meaning());
    }
}

#[test]
fn every_code_has_a_reject_vector_and_every_vector_names_a_code() {
    let file: Value = serde_json::from_str(&read("vectors/streaming.json")).expect("JSON");
    let refusals = file["vectors"].as_array().expect("vectors").iter();
    let named: BTreeSet<_> = refusals.filter_map(|vector| vector["expect"]["err"].as_str()).collect();
    assert_eq!(named, StreamRefused::ALL.iter().map(|verdict| verdict.code()).collect());
}
