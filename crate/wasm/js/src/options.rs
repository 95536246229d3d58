//! Reading what JavaScript passes in. Whatever is missing or of another kind is named.

use js_sys::{Array, Function, Reflect, Uint8Array};
use remuda_wire::{Address, Bytes32, Canonical};
use wasm_bindgen::{JsCast, JsValue};

use crate::thrown::{bad_argument, thrown};

/// A member of an options object; `undefined` when absent.
pub fn member(options: &JsValue, name: &str) -> JsValue {
    Reflect::get(options, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
}

/// A text member.
pub fn text(options: &JsValue, name: &str) -> Result<String, JsValue> {
    member(options, name).as_string().ok_or_else(|| bad_argument(&format!("`{name}` is a string")))
}

/// A text member that may be absent.
pub fn optional_text(options: &JsValue, name: &str) -> Result<Option<String>, JsValue> {
    let value = member(options, name);
    if value.is_undefined() || value.is_null() {
        Ok(None)
    } else {
        text(options, name).map(Some)
    }
}

/// A list of texts.
pub fn texts(options: &JsValue, name: &str) -> Result<Vec<String>, JsValue> {
    let wrong = || bad_argument(&format!("`{name}` is a list of strings"));
    let list: Array = member(options, name).dyn_into().map_err(|_| wrong())?;
    list.iter().map(|text| text.as_string().ok_or_else(wrong)).collect()
}

/// A bool member; absent is false.
pub fn flag(options: &JsValue, name: &str) -> bool {
    member(options, name).as_bool().unwrap_or(false)
}

/// A function member.
pub fn function(options: &JsValue, name: &str) -> Result<Function, JsValue> {
    member(options, name).dyn_into().map_err(|_| bad_argument(&format!("`{name}` is a function")))
}

/// A `Uint8Array` member.
pub fn bytes(options: &JsValue, name: &str) -> Result<Vec<u8>, JsValue> {
    let array: Uint8Array =
        member(options, name).dyn_into().map_err(|_| bad_argument(&format!("`{name}` is a Uint8Array")))?;
    Ok(array.to_vec())
}

/// A digest in hexadecimal.
pub fn digest(hexadecimal: &str, name: &str) -> Result<Bytes32, JsValue> {
    let mut digest = Bytes32::ZERO;
    hex::decode_to_slice(hexadecimal, &mut digest.0)
        .map_err(|_| bad_argument(&format!("`{name}` is 64 hexadecimal characters")))?;
    Ok(digest)
}

/// A member that may be absent: `undefined` and `null` are.
pub fn optional(options: &JsValue, name: &str) -> Option<JsValue> {
    Some(member(options, name)).filter(|value| !value.is_undefined() && !value.is_null())
}

/// A `bigint` member within 64 bits.
pub fn unsigned(options: &JsValue, name: &str) -> Result<u64, JsValue> {
    u64::try_from(member(options, name)).map_err(|_| bad_argument(&format!("`{name}` is a bigint of 64 bits")))
}

/// Bytes of a fixed length.
pub fn fixed<const N: usize>(bytes: &[u8], name: &str) -> Result<[u8; N], JsValue> {
    bytes.try_into().map_err(|_| bad_argument(&format!("`{name}` has {N} bytes")))
}

/// An address in hexadecimal.
pub fn address(hexadecimal: &str, name: &str) -> Result<Address, JsValue> {
    let mut address = Address::ZERO;
    hex::decode_to_slice(hexadecimal, &mut address.0)
        .map_err(|_| bad_argument(&format!("`{name}` is 40 hexadecimal characters")))?;
    Ok(address)
}

/// A canonical object from bytes.
pub fn object<T: Canonical>(bytes: &[u8]) -> Result<T, JsValue> {
    T::from_bytes(bytes).map_err(|error| thrown(&remuda_wire::Refusal::from(error).into()))
}
