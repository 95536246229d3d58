//! `cargo xtask simulate`: seeded schedules of latency, loss, cuts, crashes and clock jumps, engine against provider.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::tally::{Runner, Tally};
use crate::workspace::Workspace;

/// The crate whose test it is.
const PACKAGE: &str = "remuda-testkit";
/// The tests that run schedules begin with this.
const TESTS: &str = "on_any_schedule";

/// How many.
#[derive(clap::Args)]
pub struct Request {
    /// How many schedules in all.
    #[arg(long, default_value_t = 10_000)]
    pub schedules: u64,
}

/// Runs them with a test's assertions at the speed of a release.
pub fn run(workspace: &Workspace, request: &Request, tally: &mut Tally) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).env("REMUDA_SCHEDULES", request.schedules.to_string());
    cargo.args(["test", "--profile", "simulation", "-p", PACKAGE, "--test", "simulation", "--", "--nocapture", TESTS]);
    process::run_watched(&mut cargo, |line| tally.read(Runner::Cargo, line))
}
