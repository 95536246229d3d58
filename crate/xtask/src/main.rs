//! `cargo xtask <command>`: the one entry to everything that builds, checks, tests or serves this project.
//!
//! Every command makes ready what it needs first ([`setup`]), so each works on a fresh clone of a bare machine.

mod artefacts;
mod artifact;
mod audit;
mod bench;
mod browser_suites;
mod check;
mod codegen;
mod fuzz;
mod glue;
mod pages;
mod process;
mod samples;
mod setup;
mod simulate;
mod stamp;
mod suites;
mod tally;
mod validation;
mod vectors;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::process::ChildFailed;
use crate::setup::Setup;
use crate::tally::Tally;
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Builds, checks, tests and serves Remuda.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make every tool available: wasm32 target, wasm-bindgen, npm packages, a headless browser. Repeatable.
    Setup,
    /// Serve the pages with a development provider until Ctrl-C.
    Demo {
        /// Passed on to the provider, for instance `--lie withhold-record`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run every suite and close with the number of tests that passed and failed.
    Test,
    /// Formatting, layers, clippy, documentation, purity, TypeScript's types.
    Check,
    /// Only the check that crates name what they may.
    Layers,
    /// Only the check that pure crates need nothing of their host.
    Purity,
    /// Write crate/VALIDATION.md: rule by rule, what refuses its violation and what shows it.
    Validation {
        /// Only say whether it is up to date and complete.
        #[arg(long)]
        check: bool,
    },
    /// Write what is generated from the .proto file.
    Codegen {
        /// Only say whether it is up to date.
        #[arg(long)]
        check: bool,
    },
    /// Write the samples of the auditor's page.
    Samples {
        /// Only say whether they are up to date.
        #[arg(long)]
        check: bool,
    },
    /// Run conformance vectors.
    Vectors(vectors::Request),
    /// Judge an audit file; the exit code is the verdict.
    Audit(audit::Request),
    /// Thousands of seeded schedules of faults and crashes against the client's engine.
    Simulate(simulate::Request),
    /// Any bytes at all against every decoder and the auditor; what crashes is kept in fuzz/fixtures.
    Fuzz(fuzz::Request),
    /// Build the wasm that ships, with its glue, into pkg/generated.
    Wasm,
    /// Run the wasm test suites in headless Chromium.
    Browser {
        /// Only tests whose name contains this.
        filter: Option<String>,
    },
    /// Drive the pages in headless Chromium against a real provider.
    E2e {
        /// Passed on to the test runner.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure natively, in wasm under Node.js and in headless Chromium.
    Bench,
    /// Print the sizes of the generated wasm and glue.
    Size,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            // A child's own exit code is the most precise thing that we can say to a caller.
            ExitCode::from(error.downcast_ref::<ChildFailed>().map_or(1, ChildFailed::exit_code))
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let workspace = &Workspace::find()?;
    let setup = &Setup::new(workspace);
    let tally = &mut Tally::default();
    match command {
        Command::Setup => Setup::everything(workspace),
        Command::Demo { arguments } => {
            Setup::everything(workspace)?;
            pages::demo(workspace, setup, &arguments)
        }
        Command::Test => suites::run(workspace),
        Command::Check => check::run(workspace, setup),
        Command::Layers => check::layers::run(workspace),
        Command::Purity => check::purity::run(workspace, setup),
        Command::Validation { check } => validation::run(workspace, check),
        Command::Codegen { check } => codegen::run(workspace, check),
        Command::Samples { check } => samples::run(workspace, check),
        Command::Vectors(request) => vectors::run(workspace, setup, &request, tally),
        Command::Audit(request) => audit::run(workspace, &request),
        Command::Simulate(request) => simulate::run(workspace, &request, tally),
        Command::Fuzz(request) => fuzz::run(workspace, &request, tally),
        Command::Wasm => {
            artefacts::build(workspace, setup)?;
            artefacts::print_sizes(workspace)
        }
        Command::Browser { filter } => browser_suites::run(workspace, setup, filter.as_deref(), tally),
        Command::E2e { arguments } => pages::e2e(workspace, setup, &arguments, tally),
        Command::Bench => bench::run(workspace, setup),
        Command::Size => artefacts::print_sizes(workspace),
    }
}
