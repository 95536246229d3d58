//! The holder behind JavaScript functions: a non-extractable WebCrypto key or whatever the application has, and where new
//! grants come from.

use js_sys::{Function, Promise, Uint8Array};
use remuda_web::driver::Holder;
use remuda_wire::grant::StreamGrant;
use remuda_wire::{Bytes32, Canonical, Signature};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::object::ToJs;

/// What an application gives of its holder.
pub struct JsHolder {
    /// `(digest: Uint8Array) => Promise<Uint8Array>`.
    pub sign: Function,
    /// `() => Promise<Uint8Array>`, where there is one.
    pub renew_grant: Option<Function>,
}

impl Holder for JsHolder {
    async fn sign(&self, digest: Bytes32) -> Option<Signature> {
        let promised = self.sign.call1(&JsValue::UNDEFINED, &digest.0[..].to_js()).ok()?;
        awaited(&promised).await?.try_into().ok().map(Signature)
    }

    async fn renew_grant(&self) -> Option<StreamGrant> {
        let promised = self.renew_grant.as_ref()?.call0(&JsValue::UNDEFINED).ok()?;
        StreamGrant::from_bytes(&awaited(&promised).await?).ok()
    }
}

async fn awaited(promised: &JsValue) -> Option<Vec<u8>> {
    let answer = JsFuture::from(Promise::resolve(promised)).await.ok()?;
    Some(answer.dyn_into::<Uint8Array>().ok()?.to_vec())
}
