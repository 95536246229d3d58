//! What a caller does about a refusal: one word, the same over all planes (`VERDICTS.md`).

/// What the caller should do about an error. CIP-39 §17 separates error codes by remedy; so do we.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Close the session or drop the object. Nothing of it was applied, and repeating cannot help.
    Halt,
    /// The same again later, with backoff.
    Retry,
    /// Drop what waits and start again from the last verified checkpoint, a snapshot or an anchor.
    ReEnterAtBoundary,
    /// Ask for less in one subscription.
    SplitScope,
    /// Our request, credential or configuration is wrong.
    FixRequest,
    /// Show it to a person or to the application: it is theirs to decide.
    Surface,
}

impl Remedy {
    /// The stable name, as `VERDICTS.md` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Retry => "retry",
            Self::ReEnterAtBoundary => "re-enter-at-boundary",
            Self::SplitScope => "split-scope",
            Self::FixRequest => "fix-request",
            Self::Surface => "surface",
        }
    }
}
