//! The exports for Watchtower feeds and BPS broadcasts: every one converts, calls and converts. What they mean is in the
//! crates that they call.

mod bps;
mod bps_to_js;
mod chunk;
mod evidence;
mod feed;
mod feed_options;
mod feed_publisher;
mod feed_to_js;
mod source;

pub use bps::{Publisher, Subscriber};
pub use chunk::{chunk_address, owner_of, single_owner_chunk, soc_address};
pub use evidence::{
    bps_evidence, check_bps_evidence, check_bps_update, check_watchtower_evidence, watchtower_evidence,
};
pub use feed::Feed;
pub use feed_publisher::{content_key_identity, derive_content_key, wrapped_dek_aad, FeedPublisher};
