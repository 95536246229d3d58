//! The one export: bytes in, a key out. What it means is in `remuda_watchtower::recovery`.

use remuda_watchtower::mirror::CIP7_CONTENT_KEY_IBE_DOMAIN;
use remuda_watchtower::recovery::{self, WrappedDek};
use remuda_watchtower::WatchtowerRefusal;
use wasm_bindgen::prelude::wasm_bindgen;

/// What a recovery came to: a content key, or the code of why there is none.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Recovered(Result<Vec<u8>, WatchtowerRefusal>);

#[wasm_bindgen]
impl Recovered {
    /// The content key, 32 bytes; `undefined` when it was refused.
    #[wasm_bindgen(getter)]
    pub fn key(&self) -> Option<Vec<u8>> {
        self.0.as_ref().ok().cloned()
    }

    /// The code of the refusal; `undefined` when there was none.
    #[wasm_bindgen(getter)]
    pub fn code(&self) -> Option<String> {
        self.refusal().map(|refusal| refusal.code().into())
    }

    /// What to do about it.
    #[wasm_bindgen(getter)]
    pub fn remedy(&self) -> Option<String> {
        self.refusal().map(|refusal| refusal.remedy().name().into())
    }

    /// What is wrong, in one sentence.
    #[wasm_bindgen(getter)]
    pub fn meaning(&self) -> Option<String> {
        self.refusal().map(|refusal| refusal.meaning().into())
    }

    fn refusal(&self) -> Option<WatchtowerRefusal> {
        self.0.as_ref().err().copied()
    }
}

/// Recovers a content key from the committee's combined signature `sigma`. `base_aad` is what the caller expects the wrapped
/// key to be bound to; `domain` is that of the family unless another is named.
#[wasm_bindgen(js_name = unwrapContentKey)]
#[allow(clippy::too_many_arguments)] // The fields of a wrapped key cross as they are: no object is read here.
pub fn unwrap_content_key(
    sigma: &[u8],
    base_aad: &[u8],
    version: u8,
    ciphertext: Vec<u8>,
    nonce: Vec<u8>,
    ephemeral_u: Vec<u8>,
    aad: Vec<u8>,
    domain: Option<String>,
) -> Recovered {
    let wrapped = WrappedDek { version, ciphertext, nonce, ephemeral_u, aad };
    let domain = domain.as_deref().unwrap_or(CIP7_CONTENT_KEY_IBE_DOMAIN);
    let recovered = recovery::unwrap_content_key(domain, sigma, base_aad, &wrapped);
    Recovered(recovered.map(|key| key.expose().to_vec()))
}
