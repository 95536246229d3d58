//! `FeedPublisher`: composes, seals and has signed; and what whoever delivers content keys computes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use js_sys::{Function, Object, Promise, Reflect, Uint8Array};
use remuda_verify::secret::SecretBytes;
use remuda_wasm_js::object::{Builder, ToJs};
use remuda_wasm_js::options::{bytes, digest, fixed, member, optional, optional_text, text, unsigned};
use remuda_wasm_js::thrown::{bad_argument, thrown};
use remuda_watchtower::content_key;
use remuda_watchtower::message::Tags;
use remuda_watchtower::mirror::ContentKeyIdentity;
use remuda_watchtower::publisher::{Draft, Publisher, Sealing};
use remuda_watchtower::{Tag, WatchtowerRefusal};
use remuda_web::clock::{now_ms, random_bytes};
use remuda_web::feeds::failure::of_watchtower;
use remuda_wire::{Bytes24, Signature};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::feed_options::stream_id;

/// The publisher's side of one stream.
#[wasm_bindgen]
pub struct FeedPublisher(RefCell<Publisher>);

fn refused(refusal: WatchtowerRefusal) -> JsValue {
    thrown(&of_watchtower(refusal))
}

#[wasm_bindgen]
impl FeedPublisher {
    /// `{ stream, headSequence: bigint, signingKeyId: bigint, publicKey: string }`.
    ///
    /// # Errors
    /// Throws `misuse/argument`, `watchtower/key-schedule`.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue) -> Result<FeedPublisher, JsValue> {
        let key = digest(&text(options, "publicKey")?, "publicKey")?;
        let (head, id) = (unsigned(options, "headSequence")?, unsigned(options, "signingKeyId")?);
        Publisher::new(stream_id(options)?, head, id, &key).map(|it| Self(RefCell::new(it))).map_err(refused)
    }

    /// Composes the next message, seals it where `draft` has `seal: { keyEpoch, key }`, and has it signed:
    /// `(signingBytes) => Promise<Uint8Array>`. Answers `{ sequence, message }`, the message as deterministic CBOR. One at a time.
    ///
    /// # Errors
    /// Throws `misuse/argument`, `watchtower/payload-too-large`, `watchtower/signature`, `watchtower/equivocation`; what the
    /// signer throws.
    pub async fn publish(&self, draft: JsValue, sign: Function) -> Result<JsValue, JsValue> {
        let sealed_by = match optional(&draft, "seal") {
            Some(seal) => Some((unsigned(&seal, "keyEpoch")?, SecretBytes::new(fixed(&bytes(&seal, "key")?, "key")?))),
            None => None,
        };
        let sealing = match &sealed_by {
            Some((key_epoch, key)) => {
                let nonce = random_bytes().map_err(|_| bad_argument("without randomness nothing is sealed"))?;
                Some(Sealing { key_epoch: *key_epoch, key, nonce: Bytes24(nonce) })
            }
            None => None,
        };
        let composed = self.0.borrow().compose(read_draft(&draft)?, sealing.as_ref()).map_err(refused)?;
        let promised = sign.call1(&JsValue::UNDEFINED, &composed.signing_bytes().to_js())?;
        let signature = JsFuture::from(Promise::resolve(&promised)).await?;
        let signature: Uint8Array = signature.dyn_into().map_err(|_| bad_argument("a signature is a Uint8Array"))?;
        let signature = Signature(fixed(&signature.to_vec(), "signature")?);
        let message = self.0.borrow_mut().complete(composed, signature).map_err(refused)?;
        Ok(Builder::new()
            .with("sequence", &message.sequence)
            .with("message", message.to_value().to_bytes().as_slice())
            .build())
    }

    /// Signs with another key from the next message on.
    ///
    /// # Errors
    /// Throws `misuse/argument`, `watchtower/key-schedule`.
    pub fn rotate(&self, signing_key_id: u64, public_key: &str) -> Result<(), JsValue> {
        self.0.borrow_mut().rotate(signing_key_id, &digest(public_key, "publicKey")?).map_err(refused)
    }
}

fn read_draft(draft: &JsValue) -> Result<Draft, JsValue> {
    Ok(Draft {
        timestamp_unix_ms: match optional(draft, "timestampMs") {
            Some(_) => unsigned(draft, "timestampMs")?,
            None => now_ms(),
        },
        kind: text(draft, "kind")?,
        content_type: optional_text(draft, "contentType")?,
        tags: read_tags(&member(draft, "tags"))?,
        payload: bytes(draft, "payload")?,
    })
}

fn read_tags(object: &JsValue) -> Result<Tags, JsValue> {
    let Some(object) = object.dyn_ref::<Object>() else { return Ok(BTreeMap::new()) };
    let mut tags = BTreeMap::new();
    for name in Object::keys(object).iter() {
        let value = Reflect::get(object, &name)?;
        let tag = match (value.as_string(), value.as_bool(), value.as_f64()) {
            (Some(text), ..) => Tag::Text(text),
            (_, Some(bool), _) => Tag::Bool(bool),
            (.., Some(number)) => Tag::number(number).map_err(refused)?,
            _ => return Err(bad_argument("a tag is a string, a boolean or a finite number")),
        };
        tags.insert(name.as_string().unwrap_or_default(), tag);
    }
    Ok(tags)
}

/// `derive_content_key`: the content key of an epoch from the publisher's stream secret.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = deriveContentKey)]
pub fn derive_content_key(options: &JsValue) -> Result<Vec<u8>, JsValue> {
    let secret = SecretBytes::new(fixed(&bytes(options, "streamSecret")?, "streamSecret")?);
    let (chain_id, key_epoch) = (unsigned(options, "chainId")?, unsigned(options, "keyEpoch")?);
    let key = content_key::derive_content_key(&secret, chain_id, &stream_id(options)?, key_epoch);
    Ok(key.expose().to_vec())
}

fn identity(options: &JsValue) -> Result<ContentKeyIdentity, JsValue> {
    Ok(ContentKeyIdentity {
        chain_id: unsigned(options, "chainId")?,
        stream_id: stream_id(options)?,
        key_epoch: unsigned(options, "keyEpoch")?,
        generation: unsigned(options, "generation")?,
    })
}

/// `content_key_identity_bytes`.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = contentKeyIdentity)]
pub fn content_key_identity(options: &JsValue) -> Result<Vec<u8>, JsValue> {
    Ok(identity(options)?.to_bytes())
}

/// `base_wrapped_dek_aad`.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = wrappedDekAad)]
pub fn wrapped_dek_aad(options: &JsValue) -> Result<Vec<u8>, JsValue> {
    let override_hash = optional_text(options, "committeeOverrideHash")?;
    let override_hash = override_hash.map(|hash| digest(&hash, "committeeOverrideHash")).transpose()?;
    let release = digest(&text(options, "releaseKeyMaterialHash")?, "releaseKeyMaterialHash")?;
    let committee_epoch = unsigned(options, "committeeEpoch")?;
    Ok(identity(options)?.wrapped_dek_aad(committee_epoch, override_hash.as_ref(), &release))
}
