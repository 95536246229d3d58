//! The holder behind JavaScript functions: a non-extractable WebCrypto key or whatever the application has, and where new
//! grants come from.

use js_sys::Function;
use remuda_web::driver::Holder;
use remuda_wire::grant::StreamGrant;
use remuda_wire::{Bytes32, Canonical, Signature};
use wasm_bindgen::JsValue;

use crate::object::ToJs;
use crate::secret::promised;

/// What an application gives of its holder.
pub struct JsHolder {
    /// `(digest: Uint8Array) => Promise<Uint8Array>`.
    pub sign: Function,
    /// `() => Promise<Uint8Array>`, where there is one.
    pub renew_grant: Option<Function>,
}

impl Holder for JsHolder {
    async fn sign(&self, digest: Bytes32) -> Option<Signature> {
        promised(&self.sign, &digest.0[..].to_js()).await?.to_vec().try_into().ok().map(Signature)
    }

    async fn renew_grant(&self) -> Option<StreamGrant> {
        let grant = promised(self.renew_grant.as_ref()?, &JsValue::UNDEFINED).await?;
        StreamGrant::from_bytes(&grant.to_vec()).ok()
    }
}
