//! `cargo xtask audit FILE [--json]`: judges an audit file natively, as `npx remuda audit` does in wasm.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::artifact;
use crate::workspace::Workspace;

/// The crate whose program `audit` it is.
const PACKAGE: &str = "remuda-testkit";

/// What to judge.
#[derive(clap::Args)]
pub struct Request {
    /// An audit file (`CBQSAUD1`).
    file: PathBuf,
    /// Print the report as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Becomes the program, whose exit code is the verdict: 0 consistent, 1 violations, 2 undecodable, 3 not judged.
pub fn run(workspace: &Workspace, request: &Request) -> Result<()> {
    let program = artifact::build_program(&workspace.root, PACKAGE, &["--bin", "audit"])?;
    let mut command = Command::new(program);
    command.arg(&request.file).args(request.json.then_some("--json"));
    Err(anyhow::Error::new(command.exec()).context("the auditor could not be started"))
}
