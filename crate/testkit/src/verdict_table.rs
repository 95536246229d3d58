//! The tables of `spec/VERDICTS.md` beside the enums of the code, and the codes that vectors name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// One row: code, section, meaning, remedy.
pub type Row = [String; 4];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Every row of every table of codes, in order.
///
/// # Panics
/// When the document is not there, or a row has not four cells.
pub fn documented() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("spec/VERDICTS.md")).expect("VERDICTS.md");
    text.lines()
        .filter(|line| line.starts_with("| `") && line.split('`').nth(1).is_some_and(|code| code.contains('/')))
        .map(|line| {
            let mut cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', ""));
            [(); 4].map(|()| cells.next().expect("four cells"))
        })
        .collect()
}

/// Checks that the verdicts of these planes are those of the document, in its order, each with its section, meaning and
/// remedy. Where the document explains more than a sentence for people says, the sentence is its beginning.
///
/// # Panics
/// Where they differ.
pub fn assert_documented(planes: &[&str], ours: &[Row]) {
    let documented: Vec<_> =
        documented().into_iter().filter(|[code, ..]| planes.contains(&code.split('/').next().unwrap_or(""))).collect();
    let codes = |rows: &[Row]| rows.iter().map(|[code, ..]| code.clone()).collect::<Vec<_>>();
    // In the same order, so that reading one beside the other is easy.
    assert_eq!(codes(ours), codes(&documented));
    assert_eq!(codes(ours).iter().collect::<BTreeSet<_>>().len(), ours.len(), "one code has one meaning");
    for ([code, section, meaning, remedy], [_, their_section, their_meaning, their_remedy]) in
        ours.iter().zip(&documented)
    {
        assert_eq!(section, their_section, "section of {code}");
        assert!(their_remedy.starts_with(remedy.as_str()), "remedy of {code}: {remedy} / {their_remedy}");
        assert!(their_meaning.starts_with(meaning.as_str()), "meaning of {code}: {meaning} / {their_meaning}");
    }
}

/// A verdict enum as rows.
#[macro_export]
macro_rules! verdict_rows {
    ($verdicts:expr) => {
        $verdicts
            .iter()
            .map(|verdict| [verdict.code(), verdict.section(), verdict.meaning(), verdict.remedy().name()])
            .map(|row| row.map(String::from))
            .collect::<Vec<$crate::verdict_table::Row>>()
    };
}

/// Every code that an expectation names, with one vector that names it, and whether one refuses, or drops, for it alone.
///
/// # Panics
/// When the vectors are not there.
pub fn codes_in_vectors() -> BTreeMap<String, (String, bool)> {
    fn collect(value: &Value, name: &str, refuses: bool, codes: &mut BTreeMap<String, (String, bool)>) {
        match value {
            Value::Object(members) => {
                let refuses = refuses || members.get("outcome").is_some_and(|outcome| outcome == "dropped");
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

/// Checks that each of these codes has a vector that refuses, or drops, for it.
///
/// # Panics
/// When one has none.
pub fn assert_refused_in_vectors(ours: &[Row]) {
    let codes = codes_in_vectors();
    let without: Vec<_> = ours
        .iter()
        .map(|[code, ..]| code)
        .filter(|code| codes.get(*code).is_none_or(|(_, refuses)| !refuses))
        .collect();
    assert!(without.is_empty(), "codes that no vector refuses with: {without:?}");
}
