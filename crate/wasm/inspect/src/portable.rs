//! Evidence on its own: the head of a file, and the two signed objects that contradict each other.

use remuda_verify::authentic::{Authority, KeySource};
use remuda_verify::evidence::contradiction;
use remuda_verify::trusted_chain::TrustedChain;
use remuda_wire::audit::{AuditHead, AuditItem, HeldObject};
use remuda_wire::{Canonical, Reader};

use crate::objects::provider_objects;

/// How many items such a file has.
const ITEMS: u32 = 2;

/// `head` may go on with the count of items, as in a file. Both objects are authenticated under the chain reads of the head.
pub(crate) fn portable_evidence(head: &[u8], a: &[u8], b: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(head);
    let head = AuditHead::read(&mut reader);
    reader.result().ok()?;
    let mut chain = TrustedChain::new(head.context.clone(), head.stream_id);
    for read in head.chain.iter() {
        // As in an audit: a read that contradicts what is known is not used.
        let _ = chain.add(read.clone());
    }
    let authority = Authority::<dyn KeySource> { context: &head.context, stream_id: &head.stream_id, keys: &chain };
    let objects = |item| AuditItem::from_bytes(item).map(|item| provider_objects(&item)).unwrap_or_default();
    let authentic = |object: HeldObject| authority.authenticate_held(object).ok();
    let left: Vec<_> = objects(a).into_iter().filter_map(authentic).collect();
    let right: Vec<_> = objects(b).into_iter().filter_map(authentic).collect();
    let pairs = left.iter().flat_map(|left| right.iter().map(move |right| (left, right)));
    let (left, right) = pairs.into_iter().find(|(left, right)| contradiction(left, right).is_some())?;
    let mut file = head.to_bytes();
    file.extend(ITEMS.to_be_bytes());
    for object in [left, right] {
        file.extend(AuditItem::Held((**object).clone()).to_bytes());
    }
    Some(file)
}
