//! `remuda-testkit`: what tests share. Nothing shipped depends on it.

pub mod audit_text;
pub mod bench;
pub mod builder;
pub mod edge_signature;
pub mod evidence_audit;
pub mod feed_scene;
pub mod fuzz;
pub mod honest;
pub mod random;
pub mod samples;
pub mod vector;
pub mod verdict_table;
