//! `remuda-testkit`: what tests share. Nothing shipped depends on it.

pub mod fuzz;
pub mod honest;
pub mod vector;
