//! The tables of `spec/VERDICTS.md` and of the code are one, and every code has a vector.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use remuda_wire::verdict::{AdmissionRefused, Contradiction, EndpointRefused, ProtocolViolation, Refusal, VerifyError};
use remuda_wire::DecodeError;
use serde_json::Value;

/// The planes of this crate; the others are of crates above or beside it.
const PLANES: [&str; 6] = ["decode", "protocol", "verify", "admission", "endpoint", "evidence"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Code, section, meaning, remedy: every row of every table of codes.
fn documented() -> Vec<[String; 4]> {
    let text = std::fs::read_to_string(root().join("spec/VERDICTS.md")).expect("VERDICTS.md");
    text.lines()
        .filter(|line| line.starts_with("| `") && line.split('`').nth(1).is_some_and(|code| code.contains('/')))
        .map(|line| {
            let mut cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', ""));
            [(); 4].map(|()| cells.next().expect("four cells"))
        })
        .collect()
}

fn plane(code: &str) -> &str {
    code.split('/').next().unwrap_or_default()
}

fn ours() -> Vec<Refusal> {
    fn all<T: Copy + Into<Refusal>>(verdicts: &[T]) -> Vec<Refusal> {
        verdicts.iter().map(|verdict| (*verdict).into()).collect()
    }
    [
        all(DecodeError::ALL),
        all(ProtocolViolation::ALL),
        all(VerifyError::ALL),
        all(AdmissionRefused::ALL),
        all(EndpointRefused::ALL),
        all(Contradiction::ALL),
    ]
    .concat()
}

#[test]
fn every_verdict_is_documented_and_every_documented_code_is_a_verdict() {
    let documented: Vec<_> = documented().into_iter().filter(|[code, ..]| PLANES.contains(&plane(code))).collect();
    let codes: Vec<_> = documented.iter().map(|[code, ..]| code.as_str()).collect();
    let ours: Vec<_> = ours().iter().map(|refusal| refusal.code()).collect();
    // In the same order, so that reading one beside the other is easy.
    assert_eq!(ours, codes);
    assert_eq!(ours.iter().collect::<BTreeSet<_>>().len(), ours.len(), "one code has one meaning");
}

#[test]
fn sections_meanings_and_remedies_are_those_of_the_table() {
    for (refusal, [code, section, meaning, remedy]) in ours().iter().zip(documented()) {
        assert_eq!(refusal.code(), code);
        assert_eq!(refusal.section(), section, "section of {code}");
        assert_eq!(refusal.remedy().name(), remedy, "remedy of {code}");
        // The table may explain more than a sentence for people says.
        assert!(meaning.starts_with(refusal.meaning()), "meaning of {code}: {} / {meaning}", refusal.meaning());
    }
}

/// Every code that an expectation names, with one vector that names it, and whether one refuses with it alone.
fn codes_in_vectors() -> BTreeMap<String, (String, bool)> {
    fn collect(value: &Value, name: &str, refuses: bool, codes: &mut BTreeMap<String, (String, bool)>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let is_code = matches!(key.as_str(), "err" | "code" | "contradiction" | "reason" | "codes");
                    if let (true, Some(code)) = (is_code, value.as_str().filter(|text| text.contains('/'))) {
                        let entry = codes.entry(code.to_owned()).or_insert_with(|| (name.to_owned(), false));
                        entry.1 |= key == "err" || refuses;
                    }
                    collect(value, name, refuses, codes);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|value| collect(value, name, refuses, codes)),
            _ => {}
        }
    }
    let mut codes = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("vectors")).expect("vectors") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON");
        for vector in file["vectors"].as_array().expect("vectors") {
            let name = vector["name"].as_str().expect("a name");
            let refuses = vector["expect"]["ok"]["verdict"].as_str().is_some_and(|verdict| verdict != "consistent");
            collect(&vector["expect"], name, refuses, &mut codes);
        }
    }
    codes
}

#[test]
fn every_code_has_a_reject_vector() {
    let codes = codes_in_vectors();
    let without: Vec<_> = ours()
        .iter()
        .map(|refusal| refusal.code())
        .filter(|code| codes.get(*code).is_none_or(|(_, refuses)| !refuses))
        .collect();
    assert!(without.is_empty(), "codes that no vector refuses with: {without:?}");
}

#[test]
fn every_vector_names_codes_that_exist() {
    let known: BTreeSet<_> = documented().into_iter().map(|[code, ..]| code).collect();
    let unknown: Vec<_> = codes_in_vectors().into_iter().filter(|(code, _)| !known.contains(code)).collect();
    assert!(unknown.is_empty(), "codes that VERDICTS.md does not list: {unknown:?}");
}
