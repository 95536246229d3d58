//! The project's workspace, found when xtask runs: worktrees may share a target folder, so nothing is baked in at build time.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Where everything is, and which crates exist.
pub struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's target folder for native builds.
    pub target: PathBuf,
    /// The member crates.
    pub packages: Vec<Package>,
}

/// One member crate.
pub struct Package {
    /// Its name in `Cargo.toml`.
    pub name: String,
    /// The folder of its manifest.
    pub dir: PathBuf,
    /// What it depends on directly.
    pub dependencies: Vec<Dependency>,
}

/// One direct dependency of a member crate.
pub struct Dependency {
    /// The name of the crate that is depended on.
    pub name: String,
    /// Whether only tests, examples and benches see it.
    pub dev: bool,
}

impl Workspace {
    /// Finds the workspace from where cargo says that xtask is, or from the current folder, and cleans the environment
    /// of what the outer `cargo run` put there for xtask alone.
    pub fn find() -> Result<Self> {
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => env::current_dir().context("the current folder is gone")?,
        };
        forget_outer_cargo();
        let root = start
            .ancestors()
            .find(|dir| is_workspace(dir))
            .with_context(|| {
                format!(
                    "no Cargo.toml with [workspace] in or above {}",
                    start.display()
                )
            })?
            .to_path_buf();
        let text = process::output(Command::new("cargo").current_dir(&root).args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        let metadata: Value =
            serde_json::from_str(&text).context("cargo metadata printed no JSON")?;
        let target = metadata["target_directory"]
            .as_str()
            .context("cargo metadata names no target folder")?
            .into();
        let packages = list(&metadata["packages"])
            .iter()
            .map(Package::from_metadata)
            .collect::<Result<_>>()?;
        Ok(Self {
            root,
            target,
            packages,
        })
    }

    /// The member crate of that name, if there is one.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The target folder of wasm builds: a compiler of its own must not share one with the native builds.
    pub fn wasm_target(&self) -> PathBuf {
        let mut name = self.target.file_name().unwrap_or_default().to_os_string();
        name.push("-wasm");
        self.target.with_file_name(name)
    }

    /// The folder that npm installs into.
    pub fn node_modules(&self) -> PathBuf {
        self.root.join("node_modules")
    }
}

impl Package {
    /// Whether it is of use only in wasm32, so that testing it natively would test nothing.
    pub fn is_wasm_only(&self) -> bool {
        ["remuda-wasm-", "remuda-tests-wasm"]
            .iter()
            .any(|prefix| self.name.starts_with(prefix))
    }

    fn from_metadata(package: &Value) -> Result<Self> {
        let name = package["name"]
            .as_str()
            .context("a package without a name")?
            .to_owned();
        let manifest = Path::new(
            package["manifest_path"]
                .as_str()
                .context("a package without a manifest")?,
        );
        let dir = manifest
            .parent()
            .context("a manifest without a folder")?
            .to_path_buf();
        let dependencies = list(&package["dependencies"])
            .iter()
            .filter_map(|dependency| {
                let name = dependency["name"].as_str()?.to_owned();
                Some(Dependency {
                    name,
                    dev: dependency["kind"] == "dev",
                })
            })
            .collect();
        Ok(Self {
            name,
            dir,
            dependencies,
        })
    }
}

/// The elements of a JSON array; nothing for any other value.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_workspace(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join("Cargo.toml"))
        .is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
}

/// `RUSTC` and its like would override a chosen toolchain; `CARGO_MANIFEST_DIR` and its like would tell build scripts of
/// other crates about this one.
fn forget_outer_cargo() {
    let exact = [
        "RUSTC",
        "RUSTDOC",
        "CARGO",
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "CARGO_PRIMARY_PACKAGE",
        "OUT_DIR",
    ];
    let prefixes = ["CARGO_MANIFEST_", "CARGO_PKG_"];
    for (key, _) in env::vars_os() {
        let Some(name) = key.to_str() else { continue };
        if exact.contains(&name) || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            env::remove_var(name);
        }
    }
}
