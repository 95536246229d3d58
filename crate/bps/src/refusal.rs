//! Every refusal of this plane, by the table of `VERDICTS.md`.

remuda_wire::verdicts! {
    /// What a broker's frame, chunk or offer is refused or dropped for.
    pub enum BpsRefusal in "bps" {
        Protobuf = "protobuf", "protobuf", "the bytes are no protobuf message", Halt;
        Frame = "frame", "protobuf, bridge", "a field has the wrong length or value, a bridge message is too short, the offer is not the documented JSON", Halt;
        ChunkLength = "chunk-length", "cac", "a chunk is not 8 to 4,104 bytes", Halt;
        SocLength = "soc-length", "soc", "a single-owner chunk is not 105 to 4,201 bytes", Halt;
        Id = "id", "client rules", "the id is not the one of this kind, challenge and index", Halt;
        Signer = "signer", "client rules", "the signature does not recover to the owner or admin, for whatever reason", Halt;
        AuthPayload = "auth-payload", "client rules", "an AUTH chunk has a payload", Halt;
        UnknownKind = "unknown-kind", "client rules", "not an error but the reason of a drop: neither DATA nor AUTH; counted, the stream goes on", Surface;
        ReplayedIndex = "replayed-index", "client rules", "reason of a drop: a valid DATA at or below the cursor; counted, the stream goes on", Surface;
        Broker = "broker", "bridge", "the offer names another broker", Halt;
        OfferedTopics = "offered-topics", "bridge", "the offered topics are not the derived ones: nothing is signed", Halt;
    }
}
