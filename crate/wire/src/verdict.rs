//! Every refusal of the CBQS planes, by the table of `VERDICTS.md`: one code, one section, one meaning, one remedy.
//!
//! The `decode` plane is [`crate::error`]. They live in the lowest crate because every layer above speaks them: the
//! session machine and the verifier know nothing of each other, and still name the same faults the same way.

use crate::error::DecodeError;
use crate::remedy::Remedy;

verdicts! {
    /// A well-formed frame that is not legal now: the peer broke the conversation.
    pub enum ProtocolViolation in "protocol" {
        UnexpectedFrame = "unexpected-frame", "13.2", "a frame or record class that this state or subscription never receives", Halt;
        RequestIdMismatch = "request-id-mismatch", "13.2", "a reply names another request", Halt;
        ResponseMethod = "response-method", "13.2", "a response's tag is not the method of its request", Halt;
        SessionMismatch = "session-mismatch", "13.2", "a challenge or opened session names another grant, or another session than the challenge", Halt;
        ChallengeExpired = "challenge-expired", "13.2", "the challenge is no longer valid", Retry;
        UnknownSubscription = "unknown-subscription", "13.2", "a frame names a subscription that is not open", Halt;
        UnknownGroup = "unknown-group", "13.2", "a state frame names a group that no subscription follows", Halt;
        OutOfScopeRecord = "out-of-scope-record", "13.2", "a delivered record is of a lane outside the subscription scope", Halt;
        RecordOrder = "record-order", "12.2.1, 13.2", "record sequences do not ascend", Halt;
        EpochWithoutTransition = "epoch-without-transition", "12.1", "a record or checkpoint of a later broker epoch came before its transition", ReEnterAtBoundary;
        StaleLineage = "stale-lineage", "12.1", "a record or checkpoint of an earlier broker epoch came after a later one was adopted", Halt;
        WatermarkAnchor = "watermark-anchor", "13.2", "last_durable_sequence is absent, and the anchor is not checkpoint genesis, or the reverse", Halt;
        UnexpectedCheckpoint = "unexpected-checkpoint", "13.2", "a subscription without verification got a checkpoint frame", Halt;
        CoverageOrder = "coverage-order", "13.2", "lane proofs are not strictly ascending by lane_id", Halt;
        CoverageExtraneous = "coverage-extraneous", "13.2", "a lane proof for a lane outside the scope, or any proof in a FullStream frame", Halt;
        CoverageMissing = "coverage-missing", "13.2", "an in-scope lane has no proof", Halt;
        TransitionMidBatch = "transition-mid-batch", "12.2.1", "a transition came while records wait for their checkpoint", ReEnterAtBoundary;
        CreditExceeded = "credit-exceeded", "13.2", "a delivery exceeds the record or the byte credit", Halt;
        AnchorMissing = "anchor-missing", "15", "CursorTooOld whose details are not the governing signed anchor", Surface;
    }
}

verdicts! {
    /// A legal frame whose claim is false.
    pub enum VerifyError in "verify" {
        ContextMismatch = "context-mismatch", "4", "chain id or chain instance is not ours", Halt;
        StreamMismatch = "stream-mismatch", "4.1, 14", "a signed object, record or chain read is of another stream, or its stream, key-stream or provider does not fit the record", Halt;
        ChainInconsistent = "chain-inconsistent", "4.1, 17", "two chain reads contradict each other: two blocks at one height, an immutable field that differs, a generation that falls", Halt;
        ServedAtMismatch = "served-at-mismatch", "14", "served_at.chain_instance_id is not context.chain_instance_id", Halt;
        KeyUnresolved = "key-unresolved", "14", "no trusted chain read at served_at", Retry;
        Signature = "signature", "9.1", "the strict Ed25519 check fails, for whatever reason", Halt;
        CheckpointPredecessor = "checkpoint-predecessor", "12.2", "previous_checkpoint is not the digest of the last checkpoint or adopted transition", Halt;
        CheckpointGap = "checkpoint-gap", "12.2", "first_sequence is not the next one", ReEnterAtBoundary;
        TransitionLineage = "transition-lineage", "12.1", "previous_lineage is not the adopted lineage, or the replacement is not one more", ReEnterAtBoundary;
        TransitionCheckpoint = "transition-checkpoint", "12.1", "last_durable_checkpoint or last_durable_sequence is not that of the last verified checkpoint", Halt;
        RecordOutsideBatch = "record-outside-batch", "12.2.1", "a waiting record lies outside the range of the checkpoint that closes the batch", Halt;
        PresenceEmptyLeaf = "presence-empty-leaf", "12.2", "a present leaf equals EMPTY[256]", Halt;
        ProofDisagreement = "proof-disagreement", "12.2.1", "two proofs of one frame fold to different roots", Halt;
        RangeRoot = "range-root", "12.2.1", "the recomputed ordered range root is not the signed one", Halt;
        LaneCount = "lane-count", "12.2.1", "the records received for a lane are not as many as committed (absent lanes commit none): omission or injection", Halt;
        LaneRange = "lane-range", "12.2.1", "a lane's first or last sequence is not the committed one", Halt;
        LaneRoot = "lane-root", "12.2.1", "a lane's recomputed sub-root is not the committed one", Halt;
        BatchIncomplete = "batch-incomplete", "12.2", "a FullStream batch lacks a sequence of its range", Halt;
        GlobalChain = "global-chain", "14.1", "previous_global_receipt is not the global tail", Halt;
        LaneChain = "lane-chain", "14.1", "previous_lane_receipt is not the tail of the lane", Halt;
        RecordShape = "record-shape", "10, 9.3", "origin, kind and the fields they fix do not go together", Halt;
        LaneEvent = "lane-event", "8, 10", "a lane event's payload, status, stream or synthetic id does not fit its header", Halt;
        GroupChain = "group-chain", "14.2", "previous_group_receipt is not the tail of the group", Halt;
        GroupLifecycle = "group-lifecycle", "11.2", "a group is mutated before it exists, created twice, changed after deletion, or its start changes", Halt;
        DerivedId = "derived-id", "8, 13.1", "a lane, delivery-cycle, successor-cycle or lease id is not the derived one", Halt;
        DeliveryLifecycle = "delivery-lifecycle", "11.2, 13.1", "a transition that a delivery cycle cannot make: stale lease, wrong attempt, second live lease, terminal cycle reopened", Halt;
        QueueSequence = "queue-sequence", "11.2", "a cycle's queue sequence changes, is reused, or contradicts record order or the tail", Halt;
        Holder = "holder", "9.1, 13.2", "a lease is for another holder key", Halt;
        KeyIdentity = "key-identity", "9.3", "an envelope or key-batch receipt names another stream, key stream, generation, batch, count or recipient", Halt;
        KeyGeneration = "key-generation", "9.3", "a batch is neither for the active generation nor for the next", Halt;
        KeyBatchPredecessor = "key-batch-predecessor", "9.3", "previous_batch_digest is not the batch tail", Halt;
        EnvelopeDigest = "envelope-digest", "9.3", "the envelopes are not those that the batch lists", Halt;
        EnvelopeOrder = "envelope-order", "9.3", "envelopes are not strictly ascending by recipient order key", Halt;
        MembershipDigest = "membership-digest", "9.3", "membership_set_digest is not that of the complete membership", Halt;
        EnvelopeRoot = "envelope-root", "9.3", "envelope_root does not recompute", Halt;
        KeyMaterialization = "key-materialization", "9.3", "the records on the key stream are not the one valid layout of the batch", Halt;
        FinalAppendReceipt = "final-append-receipt", "9.3", "final_append_receipt is not the digest of the last append receipt", Halt;
        SnapshotHash = "snapshot-hash", "15", "the snapshot bytes do not hash to snapshot_hash", Retry;
        SnapshotReceiptBinding = "snapshot-receipt-binding", "15", "the bundled receipt's context or stream is not the manifest's", Halt;
        SnapshotAnchor = "snapshot-anchor", "15", "provider_anchor is not the receipt's signing digest", Halt;
        SnapshotCoverage = "snapshot-coverage", "15", "covered_through is not bound to the bundled receipt, or the receipt is of the wrong kind or lane", Halt;
        AnchorScope = "anchor-scope", "15", "a retention anchor governs another lane, group or lineage than was asked for", Surface;
        UnjustifiedRefusal = "unjustified-refusal", "15", "a retention anchor does not put the requested position behind its floor", Surface;
        Aead = "aead", "9.1", "a payload does not open under its header", Surface;
        Hpke = "hpke", "9.3", "an envelope does not open", Surface;
        ResultBinding = "result-binding", "13.2", "a result does not describe the request that it answers", Halt;
    }
}

verdicts! {
    /// Our own bounds, expectations or credentials refuse it; the peer did nothing wrong.
    pub enum AdmissionRefused in "admission" {
        AuthorizationGeneration = "authorization-generation", "7", "the grant's authorization_generation is not the current one", FixRequest;
        GrantNotYetValid = "grant-not-yet-valid", "7", "before not_before_ms, skew allowed", Retry;
        GrantExpired = "grant-expired", "7", "after expires_at_ms, skew allowed", FixRequest;
        GrantBounds = "grant-bounds", "7, 9.1, 18", "lifetime or lane-creation rate over the bound, or no HPKE key for an encrypted main stream", FixRequest;
        VerbDenied = "verb-denied", "7, 13.1", "the grant lacks the verb", FixRequest;
        LaneScopeDenied = "lane-scope-denied", "7.2, 13.2", "the lane scope is wider than the grant", FixRequest;
        GroupScopeDenied = "group-scope-denied", "7", "the group is outside the grant", FixRequest;
        VerificationMode = "verification-mode", "13.1", "a verifying mode that the source or scope cannot carry", FixRequest;
        ProofScopeTooWide = "proof-scope-too-wide", "13.2", "a ScopedProofs scope above 512 lanes", SplitScope;
        AfterGroupReceipt = "after-group-receipt", "13.1", "after_group_receipt on a source that has no group", FixRequest;
        GroupConfig = "group-config", "13.1", "a group configuration violates an inequality", FixRequest;
        SnapshotSigner = "snapshot-signer", "15", "the application key is not an authorized one", Surface;
        SnapshotExpectation = "snapshot-expectation", "15", "scope, cbfs_reference or encryption_generation is not the expected one", Surface;
        BatchTooLarge = "batch-too-large", "13.2", "records wait for a checkpoint beyond 65,536 records or 268,435,456 payload bytes", ReEnterAtBoundary;
    }
}

verdicts! {
    /// §4.3 admission of a provider endpoint.
    pub enum EndpointRefused in "endpoint" {
        ListCount = "list-count", "4.3 rule 1", "no endpoint, or more than the bound", FixRequest;
        Uri = "uri", "4.3 rule 1", "the URI is empty, longer than 2,048 bytes, or has an ASCII control or whitespace byte", FixRequest;
        Scheme = "scheme", "4.3 rule 2", "the URI does not begin with the scheme of its transport", FixRequest;
        Parse = "parse", "4.3 rule 3", "the WHATWG URL parser fails", FixRequest;
        Userinfo = "userinfo", "4.3 rule 3", "the parsed URL has a username or password", FixRequest;
        RawAtSign = "raw-at-sign", "4.3 rule 4", "the raw authority has an @", FixRequest;
        Localhost = "localhost", "4.3 rule 5", "the host is in the localhost namespace", FixRequest;
        Ipv4 = "ipv4", "4.3 rule 5", "the IPv4 address is in a refused range", FixRequest;
        Ipv6 = "ipv6", "4.3 rule 5", "the IPv6 address is outside 2000::/3 or in a refused range", FixRequest;
    }
}

verdicts! {
    /// Two validly signed objects that contradict each other: portable, checkable from the two alone.
    pub enum Contradiction in "evidence" {
        AppendFork = "append-fork", "14.1", "two append receipts for one record id", Surface;
        GlobalFork = "global-fork", "14.1", "two append receipts with one global predecessor", Surface;
        LaneFork = "lane-fork", "14.1", "two append receipts of one lane with one lane predecessor", Surface;
        CheckpointFork = "checkpoint-fork", "12.2", "two checkpoints with one predecessor, or with overlapping ranges in one lineage", Surface;
        TransitionFork = "transition-fork", "12.1", "two transitions for one predecessor and replacement lineage", Surface;
        TransitionContradictsCheckpoint = "transition-contradicts-checkpoint", "12.1", "a transition abandons a signed checkpoint of its predecessor lineage, or the first checkpoint of its lineage does not name it", Surface;
        GroupFork = "group-fork", "14.2", "two group receipts with one predecessor", Surface;
        KeyBatchFork = "key-batch-fork", "9.3", "two key-batch receipts that share a predecessor or a sequence", Surface;
        FloorRegression = "floor-regression", "15", "a later retention anchor with a lower floor under an equal comparison key", Surface;
        AnchorFork = "anchor-fork", "15", "two retention anchors with equal key and floor but different predecessors", Surface;
        AnchorContradictsReceipt = "anchor-contradicts-receipt", "15", "a retention anchor whose predecessor is not the receipt just before its floor", Surface;
        ViewConflict = "view-conflict", "17", "two objects served at one height but different block hashes", Surface;
    }
}

/// Any one refusal: what a judgement over whole frames answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The bytes are no canonical object.
    Decode(DecodeError),
    /// The peer broke the conversation.
    Protocol(ProtocolViolation),
    /// The peer's claim is false.
    Verify(VerifyError),
    /// Our own limits or expectations.
    Admission(AdmissionRefused),
    /// An endpoint is not admitted.
    Endpoint(EndpointRefused),
    /// Two signed objects contradict each other.
    Evidence(Contradiction),
}

macro_rules! delegate {
    ($($(#[$meta:meta])* $method:ident -> $ty:ty;)+) => {
        impl Refusal {$(
            $(#[$meta])*
            pub const fn $method(self) -> $ty {
                match self {
                    Self::Decode(verdict) => verdict.$method(),
                    Self::Protocol(verdict) => verdict.$method(),
                    Self::Verify(verdict) => verdict.$method(),
                    Self::Admission(verdict) => verdict.$method(),
                    Self::Endpoint(verdict) => verdict.$method(),
                    Self::Evidence(verdict) => verdict.$method(),
                }
            }
        )+}
    };
}

delegate! {
    /// The stable code, `plane/reason`.
    code -> &'static str;
    /// The section whose rule was broken.
    section -> &'static str;
    /// What is wrong, in one sentence.
    meaning -> &'static str;
    /// What the caller should do about it.
    remedy -> Remedy;
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {} (§{})", self.code(), self.meaning(), self.section())
    }
}

impl core::error::Error for Refusal {}

macro_rules! from_plane {
    ($($variant:ident($ty:ty)),+ $(,)?) => {$(
        impl From<$ty> for Refusal {
            fn from(verdict: $ty) -> Self {
                Self::$variant(verdict)
            }
        }
    )+};
}

from_plane! {
    Decode(DecodeError),
    Protocol(ProtocolViolation),
    Verify(VerifyError),
    Admission(AdmissionRefused),
    Endpoint(EndpointRefused),
    Evidence(Contradiction),
}
