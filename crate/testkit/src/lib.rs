//! `remuda-testkit`: what tests share. Nothing shipped depends on it.

pub mod builder;
pub mod vector;
