//! The story, told honestly, and bent in one place each.

use remuda_wire::audit::AuditItem;
use remuda_wire::frame::ServerMessage;
use remuda_wire::transition::TransitionKind;
use remuda_wire::{Bytes, Signature, Signed};

use super::story::{frame, length, message, Story};
use super::{audit_file, Family, Sample};

/// A batch in the middle of the second epoch.
const BENT: usize = 6;

pub(super) fn samples() -> Vec<Sample> {
    let story = Story::new();
    let bend = |name, family, title, says, code, bend: fn(&Story) -> Vec<AuditItem>| Sample {
        name,
        family,
        title,
        says,
        code,
        file: audit_file(&story.head(), &bend(&story)),
    };
    let lie = |name, title, says, code, how| bend(name, Family::Lie, title, says, Some(code), how);
    let contradiction = |name, title, says, code, how| bend(name, Family::Contradiction, title, says, Some(code), how);
    let mut samples = vec![
        bend(
            "honest-fast",
            Family::Honest,
            "A fast stream, three epochs",
            "Fourteen batches with their checkpoints, one restart that withdrew records and said so, two retention floors.",
            None,
            |story| story.items.clone(),
        ),
        lie(
            "withheld-record",
            "A record is withheld",
            "One record of a batch never arrives, though the signed count includes it.",
            "verify/lane-count",
            withheld,
        ),
        lie(
            "altered-record",
            "A record is altered",
            "The payload of one record differs in a single bit from what was committed.",
            "verify/lane-root",
            altered,
        ),
        lie(
            "forged-checkpoint",
            "A checkpoint is forged",
            "A checkpoint carries a signature that the provider’s key did not make.",
            "verify/signature",
            forged,
        ),
        lie(
            "skipped-batch",
            "A whole batch is skipped",
            "A batch and its checkpoint are left out, and the next one follows as if nothing were missing.",
            "verify/checkpoint-predecessor",
            skipped,
        ),
        lie(
            "hidden-restart",
            "A restart is hidden",
            "Records of a new epoch come without the signed transition that explains it.",
            "protocol/epoch-without-transition",
            hidden_restart,
        ),
        lie(
            "false-absence",
            "A lane is said to be empty",
            "The proof of a lane that has records claims that it has none.",
            "verify/proof-disagreement",
            false_absence,
        ),
        contradiction(
            "two-histories",
            "Two histories",
            "Someone else holds another checkpoint that follows the same one: both are signed.",
            "evidence/checkpoint-fork",
            fork,
        ),
        contradiction(
            "rolled-back",
            "A durable batch is withdrawn",
            "A transition abandons a checkpoint that was served as durable.",
            "evidence/transition-contradicts-checkpoint",
            rollback,
        ),
        contradiction(
            "floor-fell",
            "A floor falls",
            "A later floor says that records are retained which an earlier one said were gone.",
            "evidence/floor-regression",
            floor_fell,
        ),
    ];
    let whole = audit_file(&story.head(), &story.items);
    let cut = story.items.iter().rev().take(3).map(length).sum::<usize>() - 40;
    samples.push(Sample {
        name: "cut-off",
        family: Family::Damaged,
        title: "A file that ends too soon",
        says: "The recording was cut off in the middle of an item.",
        code: Some("decode/truncated"),
        file: whole[..whole.len() - cut].to_vec(),
    });
    samples
}

fn withheld(story: &Story) -> Vec<AuditItem> {
    let mut items = story.items.clone();
    items.remove(story.batches[BENT].1.start);
    items
}

fn altered(story: &Story) -> Vec<AuditItem> {
    let mut items = story.items.clone();
    let at = story.batches[BENT].1.start;
    let ServerMessage::Delivery(mut delivery) = message(&items[at]) else { panic!("a record") };
    let mut payload = delivery.payload.into_vec();
    payload[0] ^= 1;
    delivery.payload = Bytes::new(payload).expect("as long as it was");
    items[at] = frame(&ServerMessage::Delivery(delivery));
    items
}

fn forged(story: &Story) -> Vec<AuditItem> {
    let mut items = story.items.clone();
    let (batch, range) = &story.batches[BENT];
    let mut receipt = batch.receipt().clone();
    let mut signature = receipt.signature.0;
    signature[8] ^= 0x40;
    receipt.signature = Signature(signature);
    items[range.end - 1] = story.checkpoint_with(batch, receipt);
    items
}

fn skipped(story: &Story) -> Vec<AuditItem> {
    let mut items = story.items.clone();
    items.drain(story.batches[BENT].1.clone());
    items
}

fn hidden_restart(story: &Story) -> Vec<AuditItem> {
    let mut items = story.items.clone();
    items.remove(*story.transitions.last().expect("three"));
    items
}

/// A proof of a lane that is not there, at the key of one that is: it folds to another root.
fn false_absence(story: &Story) -> Vec<AuditItem> {
    let mut items = story.items.clone();
    let (_, range) = &story.batches[BENT];
    let at = range.end - 1;
    let ServerMessage::Checkpoint(mut checkpoint) = message(&items[at]) else { panic!("a checkpoint") };
    let mut lanes = checkpoint.lanes.into_vec();
    let bent = lanes.iter_mut().find(|proof| proof.payload.is_some()).expect("a lane with records");
    bent.payload = None;
    let lane = bent.lane_id;
    checkpoint.lanes = remuda_wire::List::new(lanes).expect("as many");
    items[at] = frame(&ServerMessage::Checkpoint(checkpoint));
    // Whoever claims that does not send the lane's records either.
    let of_lane = |item: &AuditItem| matches!(message(item), ServerMessage::Delivery(delivery) if delivery.header.lane_id == lane);
    let hidden: Vec<_> = range.clone().filter(|at| of_lane(&items[*at])).collect();
    hidden.into_iter().rev().for_each(|at| drop(items.remove(at)));
    items
}

fn fork(story: &Story) -> Vec<AuditItem> {
    let mut provider = story.before[BENT].clone();
    let rival = provider.commit(provider.records(5, 16, 3));
    let mut items = story.items.clone();
    items.push(AuditItem::Held(rival.receipt().clone().into()));
    items
}

fn rollback(story: &Story) -> Vec<AuditItem> {
    let last = *story.transitions.last().expect("three");
    let ServerMessage::BrokerEpochTransition(honest) = message(&story.items[last]) else { panic!("a transition") };
    let kept = story.batches[BENT].0.receipt();
    let mut transition = honest;
    transition.kind = TransitionKind::Void;
    transition.last_durable_checkpoint = kept.digest();
    transition.last_durable_sequence = Some(kept.last_sequence);
    transition.signature = story.provider.sign(&transition);
    let mut items = story.items[..last].to_vec();
    items.push(frame(&ServerMessage::BrokerEpochTransition(transition)));
    items
}

fn floor_fell(story: &Story) -> Vec<AuditItem> {
    let later = story.later();
    let mut items = story.items.clone();
    items.push(AuditItem::Held(later.floor(story.batches[0].0.receipt()).into()));
    items
}
