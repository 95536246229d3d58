//! `remuda-verify`: values to judgements. A decoded object is a claim; what leaves here was checked.
//!
//! | module | CIP-39 |
//! |---|---|
//! | [`signature`] | §9.1 strict Ed25519 |
//! | [`authentic`] | §4, §14 context, stream, view, key and signature of one provider object |
//! | [`merkle`], [`sparse`] | §12.2 ordered lists and the lane map |
//! | [`record_shape`] | §8, §9.3, §10 what origin and kind fix |
//! | [`fast`] | §12.1, §12.2 verified fast subscriptions and epoch transitions |
//! | [`standard`] | §14.1 append receipts, global and per lane |
//! | [`group`] | §11.2, §14.2 group and delivery-state chains |
//! | [`retention`] | §15 retention floors and refused cursors |
//! | [`evidence`] | two signed objects that contradict each other, and a pool that finds such pairs |
//! | [`audit`] | `RESOLUTIONS.md` §8 whole audit files, streamed |
//! | [`grant`], [`subscription`] | §7 grants and what they permit, §13.1 legal subscriptions |
//! | [`key_batch`] | §9.3, §9.4 key batches: chain, membership, receipt, records |
//! | [`secret`] | bytes that are erased when dropped (feature `secret`) |
//! | [`payload`] | §9.1 payloads, sealed and opened (feature `payload`) |
//! | [`hpke`], [`open`] | §9.1 and §9.3 envelopes, sealed and opened (feature `envelope`) |
//! | [`key_derivation`] | §9.2 derived keys (feature `open`) |
//! | [`response`], [`group_config`] | §13.2 whether a result answers its request, §13.1 group configurations |
//! | [`snapshot`] | §15 everything that a reader checks before it hydrates |
//! | [`sorted`] | the one map of everything here |
//! | [`price_quote`] | §4.4 price quotes |
//! | [`endpoint`] | §4.3 admission and dialling of a provider's endpoints (feature `endpoint`) |
//! | [`chain_view`], [`trusted_chain`] | §4.1, §17 chain reads against each other |
//!
//! Pure: no clock, no randomness, no log, no I/O.
#![no_std]
extern crate alloc;

pub mod audit;
pub mod authentic;
pub mod chain_view;
#[cfg(feature = "endpoint")]
pub mod endpoint;
pub mod evidence;
pub mod fast;
pub mod grant;
pub mod group;
pub mod group_config;
#[cfg(feature = "envelope")]
pub mod hpke;
pub mod key_batch;
#[cfg(feature = "open")]
pub mod key_derivation;
pub mod merkle;
#[cfg(feature = "envelope")]
pub mod open;
#[cfg(feature = "payload")]
pub mod payload;
pub mod price_quote;
pub mod record_shape;
pub mod response;
pub mod retention;
#[cfg(feature = "secret")]
pub mod secret;
pub mod signature;
pub mod snapshot;
pub mod snapshot_generation;
pub mod sorted;
pub mod sparse;
pub mod standard;
pub mod subscription;
pub mod trusted_chain;
