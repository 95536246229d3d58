//! Every refusal of the streaming wire, by the table of `VERDICTS.md`.

remuda_wire::verdicts! {
    /// Why a request of ours is not sent, or what a backend said is not believed.
    pub enum StreamRefused in "streaming" {
        Topic = "topic", "Topic", "unknown kind byte, or an identifier of the wrong length", FixRequest;
        TopicCount = "topic-count", "STR-050", "no topic, or more than 10,000", SplitScope;
        DuplicateTopic = "duplicate-topic", "STR-050", "one topic twice in a request", FixRequest;
        SequenceRange = "sequence-range", "Cursor", "a cursor or target above i64::MAX, or a row's sequence id outside 1 to i64::MAX", Halt;
        Protobuf = "protobuf", "wire", "a message is not protobuf", Retry;
        Oneof = "oneof", "wire", "no known member of a response or of an envelope's payload", Halt;
        NotStarted = "not-started", "STR-051", "something came, or the stream ended, before Started", Retry;
        StartedTwice = "started-twice", "STR-051", "a second Started", Halt;
        Targets = "targets", "STR-051", "the targets are not the requested topics in request order", Halt;
        EnvelopeShape = "envelope-shape", "STR-060", "an envelope lacks its meta, its topic or its client envelope", Halt;
        UnrequestedTopic = "unrequested-topic", "STR-060", "a row of a topic that was not requested", Halt;
        HashLength = "hash-length", "STR-060", "the message hash is absent or not 32 bytes", Halt;
        Order = "order", "STR-060", "a sequence id at or below the topic's last one or its cursor", Halt;
        HttpStatus = "http-status", "gRPC-Web", "the HTTP status is not 200", Retry;
        TextContentType = "text-content-type", "gRPC-Web", "the base64 form; refused before the body is read", Halt;
        ContentType = "content-type", "gRPC-Web", "the content type is absent or another", Halt;
        Compressed = "compressed", "gRPC-Web", "the compressed flag (bit 0)", Halt;
        FrameFlag = "frame-flag", "gRPC-Web", "a flag byte other than 00 and 80, bit 0 clear", Halt;
        MessageTooLarge = "message-too-large", "gRPC-Web", "a declared frame length above the bound", Halt;
        NoStatus = "no-status", "gRPC-Web", "the body ended or broke off without a numeric grpc-status in trailers or headers", Retry;
        AfterTrailers = "after-trailers", "gRPC-Web", "bytes after the trailers", Halt;
    }
}
