//! `cargo xtask fuzz`: any bytes at all against every decoder and the auditor, on the stable compiler.
//!
//! The targets are functions of `remuda-testkit`; `fuzz/` runs the same ones under libFuzzer for whoever has it.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::tally::{Runner, Tally};
use crate::workspace::Workspace;

/// The crate with the targets and their driver.
pub const PACKAGE: &str = "remuda-testkit";
const SMOKE_SECONDS: u64 = 20;
const SECONDS: u64 = 600;

/// What to run, and for how long.
#[derive(clap::Args, Default)]
pub struct Request {
    /// Only for twenty seconds, as `cargo xtask test` does.
    #[arg(long)]
    pub smoke: bool,
    /// For so many seconds in all.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Targets; without any, all.
    pub targets: Vec<String>,
}

/// Runs the driver; a longer run also flips every bit of every signed object.
pub fn run(workspace: &Workspace, request: &Request, tally: &mut Tally) -> Result<()> {
    let seconds = request.seconds.unwrap_or(if request.smoke { SMOKE_SECONDS } else { SECONDS });
    let mut driver = Command::new("cargo");
    driver.current_dir(&workspace.root).args(["run", "-p", PACKAGE, "--bin", "fuzz", "--"]);
    driver.args(["--seconds", &seconds.to_string(), "--vectors", "vectors", "--fixtures", "fuzz/fixtures"]);
    process::run_watched(driver.args(&request.targets), |line| tally.read(Runner::Fuzz, line))?;
    if request.smoke || !request.targets.is_empty() {
        return Ok(());
    }
    let mut bits = Command::new("cargo");
    bits.current_dir(&workspace.root).args(["test", "--profile", "simulation", "-p", PACKAGE, "--test", "mutation"]);
    process::run_watched(bits.args(["--", "--ignored"]), |line| tally.read(Runner::Cargo, line))
}
