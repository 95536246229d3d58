//! The holder key behind a JavaScript function: a non-extractable WebCrypto key, or whatever the application has.

use js_sys::{Function, Promise, Uint8Array};
use remuda_web::driver::Signer;
use remuda_wire::{Bytes32, Signature};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::object::ToJs;

/// `(digest: Uint8Array) => Promise<Uint8Array>`.
pub struct JsSigner(pub Function);

impl Signer for JsSigner {
    async fn sign(&self, digest: Bytes32) -> Option<Signature> {
        let promised = self.0.call1(&JsValue::UNDEFINED, &digest.0[..].to_js()).ok()?;
        let signed = JsFuture::from(Promise::resolve(&promised)).await.ok()?;
        let bytes = signed.dyn_into::<Uint8Array>().ok()?.to_vec();
        bytes.try_into().ok().map(Signature)
    }
}
