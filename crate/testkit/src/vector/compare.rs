//! Whether an answer is the expected one: more members are allowed inside, lists are of equal length.

use serde_json::Value;

/// True when `got` reproduces everything that `expected` states.
pub fn satisfies(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().all(|(key, value)| got.get(key).is_some_and(|got| satisfies(value, got)))
        }
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| satisfies(expected, got))
        }
        _ => expected == got,
    }
}

#[cfg(test)]
mod tests {
    use super::satisfies;
    use serde_json::json;

    #[test]
    fn more_members_are_allowed_and_fewer_are_not() {
        assert!(satisfies(&json!({"ok": {"a": 1}}), &json!({"ok": {"a": 1, "b": 2}})));
        assert!(!satisfies(&json!({"ok": {"a": 1, "b": 2}}), &json!({"ok": {"a": 1}})));
    }

    #[test]
    fn lists_have_equal_length() {
        assert!(!satisfies(&json!([1]), &json!([1, 2])));
        assert!(satisfies(&json!([{"a": 1}]), &json!([{"a": 1, "b": 2}])));
    }

    #[test]
    fn an_error_is_not_a_value() {
        assert!(!satisfies(&json!({"err": "decode/truncated"}), &json!({"ok": {}})));
        assert!(!satisfies(&json!({"ok": {}}), &json!({"err": "decode/truncated"})));
    }
}
