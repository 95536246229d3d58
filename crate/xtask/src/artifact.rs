//! What cargo built and where it put it, read from cargo's own messages rather than guessed from file names.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;
use crate::workspace::list;

/// The output of one target of one package.
pub struct Artifact {
    /// The target's name: a crate's, a binary's or a test file's.
    pub name: String,
    /// Every file that it consists of.
    pub files: Vec<PathBuf>,
    /// The program, where it is one.
    pub executable: Option<PathBuf>,
}

impl Artifact {
    /// The file with that extension.
    pub fn file(&self, extension: &str) -> Option<&PathBuf> {
        self.files
            .iter()
            .find(|file| file.extension().is_some_and(|found| found == extension))
    }

    fn from_message(message: &Value) -> Option<Self> {
        if message["reason"] != "compiler-artifact" {
            return None;
        }
        Some(Self {
            name: message["target"]["name"].as_str()?.to_owned(),
            files: list(&message["filenames"])
                .iter()
                .filter_map(Value::as_str)
                .map(PathBuf::from)
                .collect(),
            executable: message["executable"].as_str().map(PathBuf::from),
        })
    }
}

/// Runs a cargo command that builds, showing its progress, and returns what it built, dependencies included.
pub fn build(cargo: &mut Command) -> Result<Vec<Artifact>> {
    let mut artifacts = Vec::new();
    process::run_lines(
        cargo.arg("--message-format=json-render-diagnostics"),
        |line| {
            artifacts.extend(
                serde_json::from_str(line)
                    .ok()
                    .and_then(|message| Artifact::from_message(&message)),
            );
            Ok(())
        },
    )?;
    Ok(artifacts)
}

/// Builds one program of the workspace for this machine.
pub fn build_program(root: &std::path::Path, package: &str, arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root)
        .args(["build", "-p", package])
        .args(arguments);
    let mut artifacts = build(&mut cargo)?.into_iter();
    artifacts
        .find_map(|artifact| artifact.executable)
        .with_context(|| format!("{package} has no program"))
}
