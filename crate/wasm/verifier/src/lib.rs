//! The verifier's exports: bytes in, verdicts out. What they mean is in `remuda-verify`.
//!
//! Everything crosses as bytes, numbers and strings, so that the module needs nothing of its host: no object is built
//! in JavaScript and nothing is thrown.

#![cfg_attr(all(target_arch = "wasm32", not(test)), no_std)]
extern crate alloc;

use alloc::borrow::ToOwned;
use alloc::string::String;

use remuda_verify::audit::{AuditProgress, Auditor};
use remuda_verify::authentic::{Authority, KeySource, OneKey};
use remuda_verify::evidence;
use remuda_verify::signature::{self, PublicKey};
use remuda_wire::audit::HeldObject;
use remuda_wire::context::SigningContext;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::{Bytes32, Canonical, DecodeError, Refusal, Signature};
use wasm_bindgen::prelude::wasm_bindgen;

#[cfg(all(target_arch = "wasm32", not(test)))]
mod host {
    //! What the standard library would bring: an allocator, and what is left to do after a panic.

    #[global_allocator]
    static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

    #[panic_handler]
    fn trap(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}

/// An audit in progress (`RESOLUTIONS.md` §8).
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Audit(Auditor);

#[wasm_bindgen]
impl Audit {
    /// Before the first byte.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the file, however they are cut.
    pub fn push(&mut self, chunk: &[u8]) {
        self.0.push(chunk);
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress(self.0.progress())
    }

    /// The end of the file: the report as JSON. The audit is over.
    pub fn finish(self) -> String {
        self.0.finish().to_json()
    }
}

/// How far an audit is.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Progress(AuditProgress);

#[wasm_bindgen]
impl Progress {
    /// Bytes taken.
    #[wasm_bindgen(getter)]
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Items judged.
    #[wasm_bindgen(getter)]
    pub fn items(&self) -> usize {
        self.0.items
    }

    /// Items that the file says it has; `undefined` before its head is read.
    #[wasm_bindgen(getter, js_name = declaredItems)]
    pub fn declared_items(&self) -> Option<usize> {
        self.0.declared_items
    }
}

/// Judges two provider objects, each in the canonical bytes of `HeldObjectV1`, under one key: `evidence/…` where they
/// contradict each other, another code where one of them is no object of that key, context and stream, and `undefined`
/// where both are and get along.
#[wasm_bindgen(js_name = checkEvidence)]
pub fn check_evidence(context: &[u8], stream_id: &[u8], provider_key: &[u8], a: &[u8], b: &[u8]) -> Option<String> {
    let found = contradiction(context, stream_id, provider_key, [a, b]);
    found.err().map(|refusal| refusal.code().to_owned())
}

fn contradiction(context: &[u8], stream_id: &[u8], provider_key: &[u8], pair: [&[u8]; 2]) -> Result<(), Refusal> {
    let context = SigningContext::from_bytes(context)?;
    let stream_id = Bytes32::from_bytes(stream_id)?;
    let keys = OneKey(PublicKey::from_signing_key(&SigningPublicKey::from_bytes(provider_key)?));
    let [a, b] = pair.map(HeldObject::from_bytes);
    let (a, b) = (a?, b?);
    let authority = Authority::<dyn KeySource> { context: &context, stream_id: &stream_id, keys: &keys };
    let (a, b) = (authority.authenticate_held(a)?, authority.authenticate_held(b)?);
    evidence::contradiction(&a, &b).map_or(Ok(()), |contradiction| Err(contradiction.into()))
}

/// Strict Ed25519 over the message itself. False also where a key is not 32 bytes, or a signature not 64.
#[wasm_bindgen(js_name = verifySignature)]
pub fn verify_signature(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let decoded = || Ok::<_, DecodeError>((Bytes32::from_bytes(public_key)?, Signature::from_bytes(signature)?));
    decoded().is_ok_and(|(key, signature)| signature::verify_signature(&key, message, &signature).is_ok())
}
