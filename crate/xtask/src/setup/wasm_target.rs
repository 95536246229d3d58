//! The wasm32 target: `tools/ensure-wasm-toolchain.sh` decides, and what it decided is remembered.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};
use serde_json::{json, Value};

use super::{cache, Step};
use crate::workspace::Workspace;
use crate::{process, stamp};

const TARGET: &str = "wasm32-unknown-unknown";

/// Which compiler builds for wasm32: the active one, or a local one that the environment selects.
pub struct WasmToolchain {
    exports: Vec<(String, String)>,
}

impl WasmToolchain {
    /// `cargo SUBCOMMAND --target wasm32-unknown-unknown` at the workspace's root, with a target folder of its own: one compiler, one folder.
    pub fn cargo(&self, workspace: &Workspace, subcommand: &str) -> Command {
        let mut command = Command::new("cargo");
        command
            .current_dir(&workspace.root)
            .args([subcommand, "--target", TARGET]);
        command.env("CARGO_TARGET_DIR", self.target_dir(workspace));
        self.select(&mut command);
        command
    }

    /// `rustc --target wasm32-unknown-unknown`.
    pub fn rustc(&self) -> Command {
        let mut command = Command::new("rustc");
        command.args(["--target", TARGET]);
        self.select(&mut command);
        command
    }

    /// Where [`Self::cargo`] puts what it builds.
    pub fn target_dir(&self, workspace: &Workspace) -> PathBuf {
        let dir = workspace.wasm_target();
        if self.exports.is_empty() {
            dir
        } else {
            dir.join("local")
        }
    }

    fn select(&self, command: &mut Command) {
        command.envs(self.exports.iter().map(|(name, value)| (name, value)));
    }

    /// The version of the compiler and the folder of its wasm32 standard library.
    fn inspect(&self) -> Result<(String, PathBuf)> {
        let mut version = Command::new("rustc");
        version.arg("-vV");
        self.select(&mut version);
        let libdir = process::output(self.rustc().args(["--print", "target-libdir"]))?;
        Ok((process::output(&mut version)?, PathBuf::from(libdir.trim())))
    }
}

pub(super) struct WasmTarget<'a> {
    pub root: &'a Path,
}

impl WasmTarget<'_> {
    /// The remembered choice. One made under `WASM_FORCE_LOCAL` or for another rustup toolchain is not ours.
    fn memory(&self) -> Result<PathBuf> {
        let mut name = String::from("wasm-toolchain");
        if env::var_os("WASM_FORCE_LOCAL").is_some_and(|value| value == "1") {
            name += "-forced";
        }
        if let Ok(toolchain) = env::var("RUSTUP_TOOLCHAIN") {
            name.push('-');
            name.extend(toolchain.chars().map(|c| {
                if c.is_ascii_alphanumeric() || c == '.' {
                    c
                } else {
                    '-'
                }
            }));
        }
        Ok(cache::dir()?.join(name + ".json"))
    }

    fn remembered(&self) -> Option<(WasmToolchain, String, PathBuf)> {
        let memory: Value =
            serde_json::from_slice(&std::fs::read(self.memory().ok()?).ok()?).ok()?;
        let exports = memory["exports"].as_object()?.iter();
        let exports = exports
            .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect::<Option<_>>()?;
        Some((
            WasmToolchain { exports },
            memory["rustc"].as_str()?.to_owned(),
            PathBuf::from(memory["std"].as_str()?),
        ))
    }
}

impl Step for WasmTarget<'_> {
    type Tool = WasmToolchain;
    const NAME: &'static str = "wasm32 target";
    const WORK: &'static str = "looking for one, else adding it (seconds; where only Debian's packages can be reached 1 to 2 minutes, once)";

    fn find(&self) -> Result<Option<WasmToolchain>> {
        let Some((toolchain, rustc, std)) = self.remembered() else {
            return Ok(None);
        };
        // The compiler may have been upgraded and the target removed since.
        let now = toolchain.inspect();
        Ok(now
            .is_ok_and(|now| now == (rustc, std.clone()))
            .then_some(toolchain)
            .filter(|_| has_std(&std)))
    }

    fn make(&self) -> Result<WasmToolchain> {
        let script = process::output(
            Command::new("bash").arg(self.root.join("tools/ensure-wasm-toolchain.sh")),
        )?;
        let toolchain = WasmToolchain {
            exports: parse_exports(&script)?,
        };
        let (rustc, std) = toolchain.inspect()?;
        ensure!(
            has_std(&std),
            "no wasm32 standard library in {}; add it with `rustup target add {TARGET}`",
            std.display()
        );
        let exports: serde_json::Map<_, _> = toolchain
            .exports
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let memory = json!({ "exports": exports, "rustc": rustc, "std": std.to_str().context("a path that is not UTF-8")? });
        stamp::write(&self.memory()?, &memory.to_string())?;
        Ok(toolchain)
    }
}

fn has_std(libdir: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(libdir) else {
        return false;
    };
    files
        .flatten()
        .any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

/// The script's standard output: nothing, or `export NAME=VALUE` lines in which only `$PATH` is expanded.
fn parse_exports(text: &str) -> Result<Vec<(String, String)>> {
    let path = env::var("PATH").unwrap_or_default();
    let exports = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let Some((name, value)) = line
                .strip_prefix("export ")
                .and_then(|rest| rest.split_once('='))
            else {
                bail!("tools/ensure-wasm-toolchain.sh printed a line that is no export: {line}");
            };
            Ok((name.to_owned(), value.replace("$PATH", &path)))
        });
    exports.collect()
}

#[cfg(test)]
mod tests {
    use super::parse_exports;

    #[test]
    fn nothing_selects_the_active_toolchain() {
        assert_eq!(parse_exports("\n").unwrap(), []);
    }

    #[test]
    fn exports_are_read_and_path_is_expanded() {
        let exports =
            parse_exports("export RUSTUP_TOOLCHAIN=wasm-local\nexport PATH=/opt/x/bin:$PATH\n")
                .unwrap();
        assert_eq!(
            exports[0],
            ("RUSTUP_TOOLCHAIN".to_owned(), "wasm-local".to_owned())
        );
        assert!(exports[1].1.starts_with("/opt/x/bin:"));
        assert!(!exports[1].1.contains('$'));
    }

    #[test]
    fn another_line_is_an_error() {
        assert!(parse_exports("rm -rf /").is_err());
    }
}
