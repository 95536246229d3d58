//! Every bound of CIP-39 §18 (and `RESOLUTIONS.md` §10) that a decoder or client meets, each named once.
//!
//! Codec bounds are protocol constants. Of the governance rows only the immutable Maximum is here: decoding never
//! consults a live parameter.

/// `cbqs.max_provider_endpoints`, Maximum.
pub const MAX_PROVIDER_ENDPOINTS: usize = 8;
/// `cbqs.max_provider_endpoint_uri_bytes`.
pub const MAX_PROVIDER_ENDPOINT_URI_BYTES: usize = 2_048;
/// `cbqs.max_inline_message_bytes`, Maximum: a record payload.
pub const MAX_INLINE_MESSAGE_BYTES: usize = 1_048_576;
/// `cbqs.max_lane_ids_per_grant`, Maximum: also of subscription sets (§13.2).
pub const MAX_LANE_IDS_PER_GRANT: usize = 16_384;
/// `cbqs.max_proof_lanes_per_subscription`.
pub const MAX_PROOF_LANES_PER_SUBSCRIPTION: usize = 512;
/// `cbqs.max_key_envelopes_per_batch`.
pub const MAX_KEY_ENVELOPES_PER_BATCH: usize = 65_536;
/// `cbqs.max_key_envelopes_per_chunk`.
pub const MAX_KEY_ENVELOPES_PER_CHUNK: usize = 1_024;
/// `cbqs.max_wire_frame_bytes`: one client or server frame.
pub const MAX_WIRE_FRAME_BYTES: usize = 5_242_880;
/// `cbqs.max_server_frames_per_batch`: frames of one long-poll response.
pub const MAX_SERVER_FRAMES_PER_BATCH: usize = 256;
/// `cbqs.max_error_message_bytes`.
pub const MAX_ERROR_MESSAGE_BYTES: usize = 2_048;
/// `cbqs.max_error_details_bytes`.
pub const MAX_ERROR_DETAILS_BYTES: usize = 16_384;
/// `cbqs.max_lane_list_page`, Maximum.
pub const MAX_LANE_LIST_PAGE: usize = 1_024;
/// `cbqs.max_lane_creates_per_min`, Maximum.
pub const MAX_LANE_CREATES_PER_MIN: u32 = 4_096;
/// `cbqs.max_grant_ttl_ms`, Maximum.
pub const MAX_GRANT_TTL_MS: u64 = 604_800_000;
/// `cbqs.max_clock_skew_ms`, Maximum.
pub const MAX_CLOCK_SKEW_MS: u64 = 300_000;
/// `cbqs.standard.max_attempts`, Maximum.
pub const MAX_ATTEMPTS: u16 = 100;
/// §6 `CBQS_MIN_RATE_PER_BLOCK`, in wei: no main stream accrues zero rent.
pub const MIN_RATE_PER_BLOCK: u128 = 8_000;
/// `cbqs.fast.batch_max_records`, Maximum, and the bound of `record_count` in §12.2.
pub const MAX_BATCH_RECORDS: u64 = 65_536;
/// §4.2's cross-field constant: payload bytes of one fast batch.
pub const MAX_BATCH_PAYLOAD_BYTES: u64 = 268_435_456;
/// Depth of the sparse lane map, and so the most siblings of one proof (§12.2).
pub const MAX_PROOF_SIBLINGS: usize = 256;
/// §9.3: 32-byte encapsulated key, 32-byte data key, 16-byte tag.
pub const HPKE_CIPHERTEXT_BYTES: usize = 80;
/// `RESOLUTIONS.md` §10: `cbfs_reference`.
pub const MAX_CBFS_REFERENCE_BYTES: usize = 4_096;
/// `RESOLUTIONS.md` §10: chain reads of an audit file.
pub const MAX_AUDIT_CHAIN_READS: usize = 65_536;
/// `RESOLUTIONS.md` §10: bytes of one snapshot in an audit file.
pub const MAX_AUDIT_SNAPSHOT_BYTES: usize = 268_435_456;
/// Items of an audit file: as many as a `u32` count can say; the audit streams them one by one.
pub const MAX_AUDIT_ITEMS: usize = 0xffff_ffff;

// A full proof frame fits one wire frame, or `max_proof_lanes_per_subscription` would be a lie (§13.2).
const FULL_PROOF_BYTES: usize = 8_313;
const _: () = assert!(FULL_PROOF_BYTES * MAX_PROOF_LANES_PER_SUBSCRIPTION < MAX_WIRE_FRAME_BYTES);
