//! Chunks by themselves: what an application computes outside of a subscription.

use remuda_bps::chunk;
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::{self, UnsignedChunk};
use remuda_bps::BpsRefusal;
use remuda_wasm_js::options::{address, digest, fixed};
use remuda_wasm_js::thrown::{bad_argument, thrown};
use remuda_web::feeds::failure::of_bps;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

fn refused(refusal: BpsRefusal) -> JsValue {
    thrown(&of_bps(refusal))
}

/// A key that signs here.
pub fn local_signer(secret_key: &[u8]) -> Result<LocalSigner, JsValue> {
    let secret = fixed(secret_key, "secretKey")?;
    LocalSigner::new(&secret).ok_or_else(|| bad_argument("`secretKey` is no scalar of secp256k1"))
}

/// The address of the content-addressed chunk of a payload, whose span is its length.
///
/// # Errors
/// Throws `bps/chunk-length`.
#[wasm_bindgen(js_name = chunkAddress)]
pub fn chunk_address(payload: &[u8]) -> Result<String, JsValue> {
    let span = u64::try_from(payload.len()).unwrap_or(u64::MAX).to_le_bytes();
    let address = chunk::chunk_address(&[&span, payload].concat()).map_err(refused)?;
    Ok(address.to_string())
}

/// Where an owner's chunk of this identifier is.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = socAddress)]
pub fn soc_address(id: &str, owner: &str) -> Result<String, JsValue> {
    Ok(soc::soc_address(&digest(id, "id")?, &address(owner, "owner")?).to_string())
}

/// The bytes of a single-owner chunk, signed here.
///
/// # Errors
/// Throws `misuse/argument`, `bps/chunk-length`.
#[wasm_bindgen(js_name = singleOwnerChunk)]
pub fn single_owner_chunk(id: &str, payload: &[u8], secret_key: &[u8]) -> Result<Vec<u8>, JsValue> {
    let signer = local_signer(secret_key)?;
    let chunk = UnsignedChunk::new(digest(id, "id")?, payload).map_err(refused)?;
    let signature = signer.sign(&chunk.message()).ok_or_else(|| bad_argument("this key does not sign this digest"))?;
    chunk.sign(&signer.address(), &signature).map_err(refused)
}

/// The address that a secret key signs as.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = ownerOf)]
pub fn owner_of(secret_key: &[u8]) -> Result<String, JsValue> {
    Ok(local_signer(secret_key)?.address().to_string())
}
