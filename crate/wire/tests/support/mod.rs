//! The conformance vectors of `decode`, as bytes.

use remuda_testkit::vector::input::Input;
use serde_json::Value;

/// One accepted object: the name of its vector, the name of its type, its canonical bytes.
pub struct Accepted {
    pub name: String,
    pub of: String,
    pub bytes: Vec<u8>,
}

pub fn file(family: &str) -> Vec<Value> {
    let path = format!("{}/../../vectors/{family}.json", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a vector file")).expect("JSON");
    file["vectors"].as_array().expect("vectors").clone()
}

/// Every `decode` vector that is accepted and at most `max_bytes` long.
pub fn accepted(max_bytes: usize) -> Vec<Accepted> {
    file("decode")
        .iter()
        .filter(|vector| vector["op"] == "decode" && vector["expect"]["ok"].is_object())
        .map(|vector| Accepted {
            name: vector["name"].as_str().expect("a name").to_owned(),
            of: vector["in"]["type"].as_str().expect("a type").to_owned(),
            bytes: Input::new(&vector["in"]["bytes"]).bytes().expect("bytes"),
        })
        .filter(|accepted| accepted.bytes.len() <= max_bytes)
        .collect()
}
