//! `cargo xtask <command>`: the one entry to everything that builds, checks, tests or serves this project.
//!
//! Every command makes ready what it needs first ([`setup`]), so each works on a fresh clone of a bare machine.

mod process;
mod setup;
mod stamp;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::process::ChildFailed;
use crate::setup::Setup;
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Builds, checks, tests and serves Remuda."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make every tool available: wasm32 target, wasm-bindgen, npm packages, a headless browser. Repeatable.
    Setup,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            // A child's own exit code is the most precise thing that we can say to a caller.
            ExitCode::from(
                error
                    .downcast_ref::<ChildFailed>()
                    .map_or(1, ChildFailed::exit_code),
            )
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Setup => Setup::everything(&workspace).map(drop),
    }
}
