//! Every refusal of this plane, by the table of `VERDICTS.md`.

remuda_wire::verdicts! {
    /// What a Watchtower answer, message, filter or wrapped key is refused for.
    pub enum WatchtowerRefusal in "watchtower" {
        Cbor = "cbor", "CBOR", "the bytes are not deterministic CBOR", Halt;
        MessageShape = "message-shape", "signing payload", "version is not 1, unknown format, key_epoch absent for a ciphertext or present for a plaintext, a hash, stream id or signature of the wrong length, a tag that is not finite", Halt;
        PayloadTooLarge = "payload-too-large", "CIP-7 constants", "payload_inline exceeds 16,384 bytes", Halt;
        Stream = "stream", "verification", "the message is of another stream; a text id never equals a byte id", Halt;
        PayloadHash = "payload-hash", "verification", "payload_hash is not SHA-256 of payload_inline", Halt;
        KeySchedule = "key-schedule", "key schedule", "the schedule is not contiguous from id 1 or decreases, no entry is effective, or the message names another id than the effective one", Retry;
        Signature = "signature", "verification", "the strict Ed25519 check fails, for whatever reason", Halt;
        Equivocation = "equivocation", "sequences", "two signed messages for one sequence: portable evidence", Surface;
        Regression = "regression", "sequences", "a sequence below the last one", Halt;
        Gap = "gap", "sequences", "a sequence above the next one", ReEnterAtBoundary;
        Filter = "filter", "Filter DSL", "the filter is not valid", FixRequest;
        AccessRequired = "access-required", "paid mode", "no content key for this stream and epoch; the message stays pending", Surface;
        Aead = "aead", "AEAD, recovery", "a payload or a wrapped key does not open", Surface;
        WrappedDek = "wrapped-dek", "recovery", "unknown version or a wrong length in the wrapped key", Halt;
        Point = "point", "recovery", "U or sigma is not a canonical encoding of a point of the prime-order subgroup, identity excluded", Halt;
        Aad = "aad", "recovery", "the associated data is not exactly the expected base and then U", Halt;
    }
}
