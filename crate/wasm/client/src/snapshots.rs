//! Positions that begin anew: snapshots that are composed, and verified, and gaps that are accepted.

use js_sys::{Array, Uint8Array};
use remuda_client::{Failure, FetchedSnapshot, Hydrated, SnapshotDraft, SnapshotGeneration};
use remuda_position::PositionKey;
use remuda_web::driver::{Command, StoredSnapshotPart};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::{bound, Bytes, Bytes32, Canonical, Signed};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::client::Client;
use crate::object::Builder;
use crate::options::{asked_for, bytes, digest, member, object, optional_text, text, texts, unsigned, AskedFor};
use crate::thrown::{bad_argument, thrown};

/// Snapshots in one generation, and lanes in one scope that can be hydrated lane by lane.
const MAX_SNAPSHOTS: usize = bound::MAX_PROOF_LANES_PER_SUBSCRIPTION;

#[wasm_bindgen]
impl Client {
    /// Subscribes, and has the position begin behind these snapshots: `{ key, contents, checks, lastItem }` once that is
    /// durable. Until then the subscription is not opened. `generation` is `{ receipt, authorizedKeys, snapshots }`, each
    /// snapshot `{ manifest, applicationKey, bytes, lane, reference, encryptionGeneration }`.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `decode/…` of receipt or manifest; an `admission/…` or `verify/…` of the snapshots;
    /// `client/snapshot-rollback`, `client/hydrating`; what a chain read failed with; a `store/…`. Then nothing has changed.
    pub async fn hydrate(&self, spec: JsValue, generation: JsValue) -> Result<JsValue, JsValue> {
        let AskedFor::Subscription(spec) = asked_for(&spec)? else {
            return Err(bad_argument("a tail has no position to begin"));
        };
        let key = self.key_of(&spec);
        let generation = snapshot_generation(&generation)?;
        self.send(Command::Subscribe(spec));
        self.settled(|id| Command::Hydrate(id, key, Box::new(generation))).await
    }

    /// Composes manifests of a replica that holds the items of a position through `last_item`, bound to the receipt there:
    /// `{ receipt, manifests: { bytes, digest }[] }`. Each manifest ends with the 64 bytes of its signature, zero for now.
    /// `parts` are `{ lane, bytes, reference, encryptionGeneration }`.
    ///
    /// # Errors
    /// Throws `misuse/argument`, `client/not-subscribed`, `client/snapshot-place`, `client/snapshot-scope`.
    #[wasm_bindgen(js_name = draftSnapshots)]
    pub async fn draft_snapshots(&self, key: String, last_item: u64, parts: Array) -> Result<JsValue, JsValue> {
        let key = PositionKey(digest(&key, "key")?);
        let parts = list(&parts, "parts", part)?;
        self.settled(|id| Command::DraftSnapshots(id, key, last_item, parts)).await
    }

    /// Goes on from the signed floor of a subscription that failed behind it. Does nothing where there is none.
    ///
    /// # Errors
    /// Throws `misuse/argument`.
    #[wasm_bindgen(js_name = acceptGap)]
    pub fn accept_gap(&self, key: &str) -> Result<(), JsValue> {
        self.send(Command::AcceptGap(PositionKey(digest(key, "key")?)));
        Ok(())
    }
}

/// What came of a hydration, as its caller gets it.
pub fn hydrated(outcome: &Result<Hydrated, Failure>) -> Result<JsValue, JsValue> {
    let hydrated = outcome.as_ref().map_err(thrown)?;
    let contents: Array = hydrated.contents.iter().map(|content| Uint8Array::from(content.as_slice())).collect();
    let checks: Array = hydrated.checks.iter().map(|check| JsValue::from_str(check.name())).collect();
    Ok(Builder::new()
        .with("key", &hydrated.key.0)
        .with_value("contents", &contents)
        .with_value("checks", &checks)
        .with("lastItem", &hydrated.last_item)
        .build())
}

/// A draft, as its caller gets it.
pub fn drafted(outcome: &Result<SnapshotDraft, Failure>) -> Result<JsValue, JsValue> {
    let draft = outcome.as_ref().map_err(thrown)?;
    let manifest = |manifest: &remuda_wire::snapshot::SnapshotManifest| {
        Builder::new().with("bytes", &manifest.to_bytes()[..]).with("digest", &manifest.digest().0[..]).build()
    };
    let manifests: Array = draft.manifests.iter().map(manifest).collect();
    Ok(Builder::new().with("receipt", &draft.receipt.to_bytes()[..]).with_value("manifests", &manifests).build())
}

fn list<T>(list: &JsValue, name: &str, read: impl Fn(&JsValue) -> Result<T, JsValue>) -> Result<Vec<T>, JsValue> {
    let entries: &Array = list.dyn_ref().ok_or_else(|| bad_argument(&format!("`{name}` is a list")))?;
    if usize::try_from(entries.length()).is_ok_and(|length| length > MAX_SNAPSHOTS) {
        return Err(bad_argument(&format!("`{name}` has at most {MAX_SNAPSHOTS} entries")));
    }
    entries.iter().map(|entry| read(&entry)).collect()
}

fn snapshot_generation(generation: &JsValue) -> Result<SnapshotGeneration, JsValue> {
    let keys = texts(generation, "authorizedKeys")?;
    let keys: Result<_, _> = keys.iter().map(|key| digest(key, "authorizedKeys").map(SigningPublicKey)).collect();
    Ok(SnapshotGeneration {
        receipt: object(&bytes(generation, "receipt")?)?,
        snapshots: list(&member(generation, "snapshots"), "snapshots", fetched)?,
        authorized_keys: keys?,
    })
}

fn fetched(snapshot: &JsValue) -> Result<FetchedSnapshot, JsValue> {
    Ok(FetchedSnapshot {
        manifest: object(&bytes(snapshot, "manifest")?)?,
        application_key: SigningPublicKey(digest(&text(snapshot, "applicationKey")?, "applicationKey")?),
        bytes: content(snapshot)?,
        lane_id: lane(snapshot)?,
        cbfs_reference: bytes(snapshot, "reference")?,
        encryption_generation: unsigned(snapshot, "encryptionGeneration")?,
    })
}

fn part(part: &JsValue) -> Result<StoredSnapshotPart, JsValue> {
    Ok(StoredSnapshotPart {
        lane_id: lane(part)?,
        bytes: content(part)?,
        cbfs_reference: Bytes::new(bytes(part, "reference")?).map_err(|error| bad_argument(&error.to_string()))?,
        encryption_generation: unsigned(part, "encryptionGeneration")?,
    })
}

fn lane(snapshot: &JsValue) -> Result<Option<Bytes32>, JsValue> {
    optional_text(snapshot, "lane")?.map(|lane| digest(&lane, "lane")).transpose()
}

/// The bytes of a snapshot, at most as many as an audit file may hold, before they are copied.
fn content(snapshot: &JsValue) -> Result<Vec<u8>, JsValue> {
    let length = member(snapshot, "bytes").dyn_ref::<Uint8Array>().map(Uint8Array::length);
    if length.and_then(|length| usize::try_from(length).ok()).is_some_and(|it| it > bound::MAX_AUDIT_SNAPSHOT_BYTES) {
        return Err(bad_argument("a snapshot is larger than any that is audited"));
    }
    bytes(snapshot, "bytes")
}
