//! What is generated from the .proto file and checked in. A program of its own writes it, so that nobody else builds what
//! it depends on.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

/// The program that writes it.
const PACKAGE: &str = "remuda-codegen";

/// Writes it, or only says whether it is up to date.
pub fn run(workspace: &Workspace, check: bool) -> Result<()> {
    let mut command = Command::new("cargo");
    command.current_dir(&workspace.root).args(["run", "-p", PACKAGE, "--"]);
    if check {
        command.arg("--check");
    }
    process::run(&mut command)
}
