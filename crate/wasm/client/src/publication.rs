//! Publishing a key batch (§9.3): composed and sealed here, signed by whoever holds the rotation key, sent until it is durable.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use futures_channel::oneshot;
use js_sys::{Array, Uint8Array};
use remuda_client::member_keys::{KeyBatchDraft, MemberKeys, UploadStep};
use remuda_client::{CommandId, CommandOutcome, Connection, Failure};
use remuda_verify::secret::SecretBytes;
use remuda_web::clock::{now_ms, random_bytes, sleep_until};
use remuda_web::driver::{Command, Commands};
use remuda_wire::key::HpkePublicKey;
use remuda_wire::{Bytes32, Canonical, Remedy, Signature};
use wasm_bindgen::{JsCast, JsValue};

use crate::object::ToJs;
use crate::options::{data_key, fixed, function, member, unsigned};
use crate::secret::promised;
use crate::thrown::{bad_argument, thrown};
use crate::to_js;

/// How long an upload waits for a session, and after an answer that asks for the same again.
const PAUSE_MS: u64 = 500;

/// The requests of uploads that are not settled.
#[derive(Default)]
pub struct Uploads {
    pending: RefCell<BTreeMap<CommandId, oneshot::Sender<CommandOutcome>>>,
    next: Cell<u64>,
    is_open: Cell<bool>,
    is_closed: Cell<bool>,
}

impl Uploads {
    /// How the engine of the key stream stands to its provider now.
    pub fn connected(&self, connection: &Connection) {
        self.is_open.set(matches!(connection, Connection::Open { .. }));
        self.is_closed.set(matches!(connection, Connection::Closed));
    }

    /// A request was settled.
    pub fn settled(&self, id: CommandId, outcome: CommandOutcome) {
        if let Some(asker) = self.pending.borrow_mut().remove(&id) {
            // Whoever asked may be gone.
            drop(asker.send(outcome));
        }
    }

    async fn ask(&self, commands: &Commands, request: remuda_wire::request::RequestBody) -> CommandOutcome {
        let id = CommandId(self.next.get());
        self.next.set(id.0 + 1);
        let (asker, settled) = oneshot::channel();
        self.pending.borrow_mut().insert(id, asker);
        commands.send(Command::Request(id, Box::new(request)));
        settled.await.unwrap_or(CommandOutcome::Unknown)
    }

    /// Publishes `{ generation, recipients, dataKey, sign }` and gives the canonical `KeyBatchReceiptV1`.
    ///
    /// # Errors
    /// Throws `misuse/argument`, `encryption/membership-unknown`, those of [`KeyBatchDraft`], what the provider refused it with, and
    /// `command/outcome-unknown` when the client was closed meanwhile.
    pub async fn publish(
        &self,
        keys: &RefCell<MemberKeys>,
        commands: &Commands,
        options: &JsValue,
    ) -> Result<JsValue, JsValue> {
        let generation = unsigned(options, "generation")?;
        let wrong = || bad_argument("`recipients` is a list of 32-byte public keys");
        let recipients: Array = member(options, "recipients").dyn_into().map_err(|_| wrong())?;
        let recipients: Result<Vec<_>, JsValue> = recipients
            .iter()
            .map(|key| {
                let key: Uint8Array = key.dyn_into().map_err(|_| wrong())?;
                Ok(HpkePublicKey(Bytes32(fixed(&key.to_vec(), "recipients")?)))
            })
            .collect();
        let key: Uint8Array = member(options, "dataKey").dyn_into().map_err(|_| bad_argument("`dataKey` is bytes"))?;
        let draft = compose(&keys.borrow(), generation, &recipients?, &data_key(&key)?)?;
        let signature = promised(&function(options, "sign")?, &draft.digest().0[..].to_js()).await;
        let signature = signature.and_then(|signature| signature.to_vec().try_into().ok());
        let signature = signature.map(Signature).ok_or_else(|| bad_argument("`sign` gives 64 bytes"))?;
        let mut upload = {
            let keys = keys.borrow();
            let position = keys.position(generation).ok_or_else(|| thrown(&membership_unknown()))?;
            draft.sign(signature, &position).map_err(|failure| thrown(&failure))?
        };
        loop {
            if self.is_closed.get() {
                return to_js::command_outcome(&CommandOutcome::Unknown);
            }
            if self.is_open.get() {
                let outcome = self.ask(commands, upload.request()).await;
                let is_accepted = matches!(outcome, CommandOutcome::Accepted(_));
                match upload.handle(&outcome) {
                    UploadStep::Send if is_accepted => continue,
                    UploadStep::Send => {}
                    UploadStep::Durable(receipt) => return Ok(receipt.to_bytes()[..].to_js()),
                    UploadStep::Failed(failure) => return Err(thrown(&failure)),
                }
            }
            sleep_until(now_ms().saturating_add(PAUSE_MS)).await;
        }
    }
}

fn compose(
    keys: &MemberKeys,
    generation: u64,
    recipients: &[HpkePublicKey],
    data_key: &SecretBytes,
) -> Result<KeyBatchDraft, JsValue> {
    let position = keys.position(generation).ok_or_else(|| thrown(&membership_unknown()))?;
    let mut has_randomness = true;
    let fresh = || {
        SecretBytes::filled(|bytes| match random_bytes() {
            Ok(random) => *bytes = random,
            Err(_) => has_randomness = false,
        })
    };
    let draft = KeyBatchDraft::compose(&position, generation, recipients, data_key, now_ms(), fresh);
    let draft = draft.map_err(|failure| thrown(&failure))?;
    has_randomness.then_some(draft).ok_or_else(|| bad_argument("without randomness nothing is sealed"))
}

fn membership_unknown() -> Failure {
    Failure {
        code: "encryption/membership-unknown".into(),
        remedy: Remedy::Retry,
        rule: "CIP-39 §9.3".into(),
        meaning: "the batches of this generation were not followed from its first on, or the chain was not read yet"
            .into(),
    }
}
