//! Secrets on their way between JavaScript and this memory: copied in place, and erased where they were.

use js_sys::{Function, Promise, Uint8Array};
use remuda_verify::hpke;
use remuda_verify::secret::SecretBytes;
use remuda_wire::Bytes32;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use zeroize::Zeroizing;

use crate::thrown::bad_argument;

/// 32 secret bytes of JavaScript; `None` for another length. The array keeps them.
pub fn secret(array: &Uint8Array) -> Option<SecretBytes> {
    (array.length() == 32).then(|| SecretBytes::filled(|bytes| array.copy_to(bytes)))
}

/// 32 secret bytes that a function promises, erased in its array.
pub async fn promised_secret(function: &Function, argument: &JsValue) -> Option<SecretBytes> {
    let array = promised(function, argument).await?;
    let taken = secret(&array);
    array.fill(0, 0, array.length());
    taken
}

/// Secret bytes that a function promises, erased in its array.
pub async fn promised_secrets(function: &Function) -> Option<Zeroizing<Vec<u8>>> {
    let array = promised(function, &JsValue::UNDEFINED).await?;
    let taken = Zeroizing::new(array.to_vec());
    array.fill(0, 0, array.length());
    Some(taken)
}

/// What a function promises, where that is bytes.
pub async fn promised(function: &Function, argument: &JsValue) -> Option<Uint8Array> {
    let promise = function.call1(&JsValue::UNDEFINED, argument).ok()?;
    JsFuture::from(Promise::resolve(&promise)).await.ok()?.dyn_into().ok()
}

/// X25519 for browsers whose WebCrypto has none: the public key of 32 secret bytes.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = x25519PublicKey)]
pub fn x25519_public_key(secret_key: &Uint8Array) -> Result<Uint8Array, JsValue> {
    let secret_key = secret(secret_key).ok_or_else(|| bad_argument("a member's key has 32 bytes"))?;
    Ok(Uint8Array::from(&hpke::public_key(&secret_key).0[..]))
}

/// X25519 for browsers whose WebCrypto has none.
///
/// # Errors
/// Throws `misuse/argument` for another length, and for a public key of small order.
#[wasm_bindgen]
pub fn x25519(secret_key: &Uint8Array, public_key: &Uint8Array) -> Result<Uint8Array, JsValue> {
    let wrong = || bad_argument("a member's key and a public key have 32 bytes, and agree on something");
    let secret_key = secret(secret_key).ok_or_else(wrong)?;
    let public_key = public_key.to_vec().try_into().map(Bytes32).map_err(|_| wrong())?;
    let agreed = hpke::agree(&secret_key, &public_key).ok_or_else(wrong)?;
    Ok(Uint8Array::from(&agreed.expose()[..]))
}
