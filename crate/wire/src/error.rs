//! The `decode` plane: the bytes are no canonical object.

verdicts! {
    /// Why bytes are not a canonical object. Said by whoever decodes, before anything is believed.
    pub enum DecodeError in "decode" {
        Truncated = "truncated", "14", "the input ends inside a field", Halt;
        TrailingBytes = "trailing-bytes", "13.2, 14", "bytes are left after a complete top-level object, or after a frame inside its batch slot", Halt;
        UnknownVersion = "unknown-version", "4, 13.2", "a version byte (context, frame, record, schedule) is not 1, or the audit magic differs", Surface;
        UnknownTag = "unknown-tag", "4, 14", "a tag with no meaning: enum, option, bool, key algorithm or suite, method, frame", Halt;
        LengthOverBound = "length-over-bound", "18", "a declared length or count exceeds its immutable bound", Halt;
        FrameTooLarge = "frame-too-large", "18", "a frame exceeds 5,242,880 bytes", Halt;
        InvalidUtf8 = "invalid-utf8", "13.2, 14", "a string is not valid UTF-8", Halt;
        NonzeroProviderEpoch = "nonzero-provider-epoch", "4", "a provider_epoch is not zero", Halt;
        NotAscending = "not-ascending", "7.2, 13.2", "a lane set or lane page is not strictly ascending", Halt;
        Empty = "empty", "7.2, 9.4, 12.2", "a collection that has at least one element is empty: lane set, envelope digests, lane_record_count", Halt;
        Duplicate = "duplicate", "RES 8", "two chain reads of an audit file have the same view", FixRequest;
        UnknownVerb = "unknown-verb", "7", "a grant sets a verb bit above 6", FixRequest;
        ZeroDigest = "zero-digest", "12.2, 13.2, 15", "a commitment that is never zero is zero", Halt;
        IdentityMismatch = "identity-mismatch", "8, 13.2, 14.2", "fields that name the same thing twice inside one object differ", Halt;
        HeaderHash = "header-hash", "14.1", "a standard delivery's header does not hash to the receipt's header_hash", Halt;
        PayloadHash = "payload-hash", "14.1", "a standard delivery's payload does not hash to the receipt's payload_hash", Halt;
        StateDigest = "state-digest", "13.2, 14.2", "the state in the frame does not hash to resulting_state_digest", Halt;
        MethodMismatch = "method-mismatch", "13.1, 13.2", "proof.method differs from the body tag, or a receipt action from the response method", Halt;
        BodyHash = "body-hash", "13.1", "proof.body_hash is not the hash of the body", Halt;
        DeliveryShape = "delivery-shape", "13.2", "the options of a delivery or an append result do not fit its delivery class", Halt;
        StateShape = "state-shape", "14.2", "a delivery-state receipt, result state or group update violates the per-action table or its inequalities", Halt;
        PageShape = "page-shape", "13.2", "a lane page's next_after_lane_id is not its last lane", Halt;
        ChunkCount = "chunk-count", "13.1, 13.2", "total_chunks is zero or accepted_chunks exceeds it", Halt;
        KeyReceiptShape = "key-receipt-shape", "9.3", "a key-batch receipt is structurally impossible: count, range or zero digests", Halt;
        EnvelopeLength = "envelope-length", "9.3", "an HPKE ciphertext is not exactly 80 bytes", Halt;
        CheckpointShape = "checkpoint-shape", "12.2", "a checkpoint covers no record or more than 65,536, overflows, or durable_high_water is not last_sequence", Halt;
        TransitionShape = "transition-shape", "12.1", "the options of a transition do not fit its kind, or a genesis transition is not clean, empty and at epoch 0", Halt;
        ProofShape = "proof-shape", "12.2, 13.2", "siblings are not as many as set bits, or one equals EMPTY of its depth", Halt;
        AnchorShape = "anchor-shape", "15", "lane_id and previous_lane_receipt of a standard anchor are not present together", Halt;
        Endpoint = "endpoint", "4.3", "an endpoint URI is empty, has an ASCII control or space byte, or its scheme is not that of its transport", Halt;
    }
}
