//! The samples of the auditor's page, checked in. A program of the testkit makes them.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

/// The crate whose program `samples` it is.
const PACKAGE: &str = "remuda-testkit";
/// Where the page finds them.
const FOLDER: &str = "www/public/samples";

/// Writes them, or only says whether they are up to date.
pub fn run(workspace: &Workspace, check: bool) -> Result<()> {
    let mut command = Command::new("cargo");
    command.current_dir(&workspace.root).args(["run", "-p", PACKAGE, "--bin", "samples", "--", FOLDER]);
    if check {
        command.arg("--check");
    }
    process::run(&mut command)
}
