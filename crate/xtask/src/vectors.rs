//! Conformance vectors: one runner, natively and in WebAssembly under Node.js.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::glue::{Build, Glue, Host};
use crate::process;
use crate::setup::Setup;
use crate::tally::{Runner, Tally};
use crate::workspace::Workspace;

/// The crate whose program `vectors` runs them natively.
pub const NATIVE: &str = "remuda-testkit";
/// The crate that runs them in wasm.
pub const WASM: &str = "remuda-tests-wasm-vectors";

/// What to run.
#[derive(clap::Args, Default)]
pub struct Request {
    /// Run in WebAssembly under Node.js instead of natively.
    #[arg(long)]
    pub wasm: bool,
    /// Print one JSON line per vector, as vectors/README.md says, instead of what differs.
    #[arg(long)]
    pub json: bool,
    /// Vector files; without any, all of the project's.
    pub files: Vec<PathBuf>,
}

/// Runs them, adding to `tally` by the closing line.
pub fn run(workspace: &Workspace, setup: &Setup, request: &Request, tally: &mut Tally) -> Result<()> {
    let files = match request.files.as_slice() {
        [] => project_files(&workspace.root.join("vectors"))?,
        // The runners start in another folder than the one that the names were given in.
        named => named.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
    };
    let mut command = if request.wasm { in_wasm(workspace, setup)? } else { natively(workspace) };
    if request.json {
        command.arg("--json");
    }
    process::run_watched(command.args(files), |line| tally.read(Runner::Vectors, line))
}

fn natively(workspace: &Workspace) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(&workspace.root).args(["run", "-p", NATIVE, "--bin", "vectors", "--"]);
    command
}

fn in_wasm(workspace: &Workspace, setup: &Setup) -> Result<Command> {
    let out = setup.wasm_toolchain()?.target_dir(workspace).join("glue/vectors");
    let glue =
        Glue { package: WASM, name: "vectors", build: Build::Dev, host: Host::Node, out }.make(workspace, setup)?;
    let mut command = Command::new("node");
    command.current_dir(&workspace.root).arg("tests-wasm/vectors/run.mjs").arg(glue);
    Ok(command)
}

fn project_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}
