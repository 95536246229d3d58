//! A filter from JSON. Whatever is not defined is refused, wherever it stands.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use super::{Field, Filter, Node, Number, Scalar, Test, MAX_DEPTH, MAX_PREDICATES};
use crate::cbor::Float64;
use crate::refusal::WatchtowerRefusal;

const REFUSED: WatchtowerRefusal = WatchtowerRefusal::Filter;

impl Filter {
    /// Checks a whole filter.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::Filter`].
    pub fn from_json(json: &Value) -> Result<Self, WatchtowerRefusal> {
        let mut predicates = 0;
        node(json, 0, &mut predicates).map(Self)
    }

    /// Checks a whole filter as text.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::Filter`].
    pub fn from_text(text: &str) -> Result<Self, WatchtowerRefusal> {
        Self::from_json(&serde_json::from_str(text).map_err(|_| REFUSED)?)
    }
}

fn node(json: &Value, depth: usize, predicates: &mut usize) -> Result<Node, WatchtowerRefusal> {
    let members = json.as_object().ok_or(REFUSED)?;
    let mut entries = members.iter();
    let (Some((name, content)), None) = (entries.next(), entries.next()) else {
        *predicates += 1;
        return if *predicates <= MAX_PREDICATES { predicate(members) } else { Err(REFUSED) };
    };
    if depth >= MAX_DEPTH {
        return Err(REFUSED);
    }
    let mut nodes = |json: &Value| -> Result<Vec<Node>, WatchtowerRefusal> {
        json.as_array().ok_or(REFUSED)?.iter().map(|json| node(json, depth + 1, predicates)).collect()
    };
    match name.as_str() {
        "all" => nodes(content).map(Node::All),
        "any" => nodes(content).map(Node::Any),
        "not" => node(content, depth + 1, predicates).map(|node| Node::Not(Box::new(node))),
        _ => Err(REFUSED),
    }
}

fn predicate(members: &serde_json::Map<String, Value>) -> Result<Node, WatchtowerRefusal> {
    let text = |name: &str| members.get(name).and_then(Value::as_str).ok_or(REFUSED);
    let (field, operator, value) = (text("field")?, text("op")?, members.get("value").ok_or(REFUSED)?);
    if members.len() != 3 {
        return Err(REFUSED);
    }
    let test = match operator {
        "eq" => Test::Eq(scalar(value)?),
        "ne" => Test::Ne(scalar(value)?),
        "in" => Test::In(scalars(value)?),
        "nin" => Test::Nin(scalars(value)?),
        "gte" => Test::Gte(number(value)?),
        "lte" => Test::Lte(number(value)?),
        "exists" => Test::Exists(value.as_bool().ok_or(REFUSED)?),
        _ => return Err(REFUSED),
    };
    let field = match field {
        "kind" => Field::Kind,
        "sequence" => Field::Sequence,
        "timestamp_unix_ms" => Field::TimestampUnixMs,
        other => match other.strip_prefix("tags.") {
            Some(name) if !name.is_empty() => Field::Tag(name.into()),
            _ => return Err(REFUSED),
        },
    };
    Ok(Node::Predicate(field, test))
}

fn scalar(json: &Value) -> Result<Scalar, WatchtowerRefusal> {
    match json {
        Value::String(text) => Ok(Scalar::Text(text.clone())),
        Value::Bool(bool) => Ok(Scalar::Bool(*bool)),
        other => number(other).map(Scalar::Number),
    }
}

fn scalars(json: &Value) -> Result<Vec<Scalar>, WatchtowerRefusal> {
    json.as_array().ok_or(REFUSED)?.iter().map(scalar).collect()
}

fn number(json: &Value) -> Result<Number, WatchtowerRefusal> {
    let integer = json.as_u64().map(Number::from).or_else(|| json.as_i64().map(Number::from));
    let float = || json.as_f64().and_then(Float64::new).map(Number::from);
    integer.or_else(float).ok_or(REFUSED)
}
