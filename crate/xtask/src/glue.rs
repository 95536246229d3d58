//! From a cdylib crate to JavaScript: `cargo build` for wasm32, wasm-bindgen, and for what ships wasm-opt.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::setup::Setup;
use crate::stamp::{self, Stamp};
use crate::workspace::Workspace;
use crate::{artifact, process};

/// What to make of which crate.
pub struct Glue<'a> {
    /// The crate, a cdylib.
    pub package: &'a str,
    /// What the files are called: `NAME.js`, `NAME.d.ts`, `NAME_bg.wasm`.
    pub name: &'a str,
    /// How it is compiled.
    pub build: Build,
    /// What loads it.
    pub host: Host,
    /// The folder that the glue and the `.wasm` are put in. Nothing else may be in there.
    pub out: PathBuf,
}

/// How a crate is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// As it ships: `release`, then wasm-opt.
    Release,
    /// As it ships where its size counts most: the profile `release-verifier`, then wasm-opt, its glue minified.
    Small,
    /// Optimised enough to compute, built soon: the profile `wasm-dev`.
    Dev,
}

/// What loads the glue.
#[derive(Clone, Copy)]
pub enum Host {
    /// An ES module for a page or a worker.
    Web,
    /// A CommonJS module for Node.js.
    Node,
}

/// The runs of wasm-opt for speed.
const FAST: &[&[&str]] = &[&["-O3"]];
/// Those for size: what is inlined where it is called once is large to compress, and what only tools read is left out last,
/// since the first run reads it.
const SMALL: &[&[&str]] = &[
    &["-Oz", "--converge", "--one-caller-inline-max-function-size=1"],
    &["-Oz", "--converge", "--strip-target-features", "--strip-producers"],
];

impl Glue<'_> {
    /// Makes the glue and returns the path of its JavaScript. What is made from the very same `.wasm` is kept.
    pub fn make(&self, workspace: &Workspace, setup: &Setup) -> Result<PathBuf> {
        let package = self.package;
        let node = setup.node()?;
        let tools = setup.bindgen()?;
        let built = self.compile(workspace, setup)?;
        let script = self.out.join(self.name).with_extension("js");

        let binaryen = stamp::read(&workspace.node_modules().join("binaryen/package.json"))?;
        let runs = match self.build {
            Build::Release => FAST,
            Build::Small => SMALL,
            Build::Dev => &[],
        };
        let inputs = [stamp::read(&built)?, tools.version.into_bytes(), binaryen, runs.concat().join(" ").into_bytes()];
        let stamp = Stamp::new(self.out.join(".stamp"), &inputs);
        if stamp.is_current() && script.is_file() {
            return Ok(script);
        }

        eprintln!("[wasm] {package}: wasm-bindgen");
        let staged = self.out.with_extension("staged");
        remove_dir(&staged)?;
        let target = match self.host {
            Host::Web => "web",
            Host::Node => "nodejs",
        };
        process::run(
            Command::new(&tools.wasm_bindgen)
                .args(["--target", target, "--out-name", self.name, "--out-dir"])
                .arg(&staged)
                .arg(&built),
        )?;
        if let Host::Node = self.host {
            // The glue is CommonJS wherever the nearest package.json above says otherwise.
            stamp::write(&staged.join("package.json"), "{ \"type\": \"commonjs\" }\n")?;
        }
        let wasm = staged.join(format!("{}_bg.wasm", self.name));
        for flags in runs {
            eprint!("[wasm] {package}: wasm-opt {} (about 20 s) … ", flags.join(" "));
            let started = Instant::now();
            // No feature flag: wasm-opt reads `target_features`, and what more it allowed browsers might refuse.
            process::run(node.program("wasm-opt").args(*flags).arg(&wasm).arg("-o").arg(&wasm))?;
            eprintln!("done ({:.0} s)", started.elapsed().as_secs_f64());
        }
        if self.build == Build::Small {
            let script = staged.join(self.name).with_extension("js");
            process::run(
                node.program("rolldown").arg(&script).args(["--minify", "--format", "esm", "--file"]).arg(&script),
            )?;
        }
        remove_dir(&self.out)?;
        fs::rename(&staged, &self.out).with_context(|| format!("cannot make {}", self.out.display()))?;
        stamp.write()?;
        Ok(script)
    }

    fn compile(&self, workspace: &Workspace, setup: &Setup) -> Result<PathBuf> {
        let package = self.package;
        eprintln!("[wasm] {package}: cargo build");
        let mut cargo = setup.wasm_toolchain()?.cargo(workspace, "build");
        let profile = match self.build {
            Build::Release => "release",
            Build::Small => "release-verifier",
            Build::Dev => "wasm-dev",
        };
        let built = artifact::build(cargo.args(["--lib", "-p", package, "--profile", profile]))?;
        let wasm = built.iter().find_map(|artifact| artifact.file("wasm"));
        Ok(wasm.with_context(|| format!("{package} builds no .wasm: is its crate-type cdylib?"))?.clone())
    }
}

fn remove_dir(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}
