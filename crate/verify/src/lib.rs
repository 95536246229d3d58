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
//! | [`chain_view`] | §4.1, §17 chain reads against each other |
//!
//! Pure: no clock, no randomness, no log, no I/O.
#![no_std]
extern crate alloc;

pub mod authentic;
pub mod chain_view;
pub mod evidence;
pub mod fast;
pub mod group;
pub mod merkle;
pub mod record_shape;
pub mod retention;
pub mod signature;
pub mod sparse;
pub mod standard;
