//! wasm-bindgen's command line tools, at exactly the version of the library that the workspace locks.
//!
//! They are built from `tools/wasm-bindgen`, outside the workspace, and installed into the per-user cache, so that a
//! second clone finds them there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};

use super::{cache, Step};
use crate::{process, stamp};

const NAMES: [&str; 2] = ["wasm-bindgen", "wasm-bindgen-test-runner"];

/// Where the two programs are.
pub struct BindgenTools {
    /// Writes the JavaScript glue of a `.wasm` file.
    pub wasm_bindgen: PathBuf,
    /// Runs the tests in a `.wasm` file.
    pub test_runner: PathBuf,
    /// The version of both.
    pub version: String,
}

pub(super) struct Bindgen<'a> {
    pub root: &'a Path,
}

impl Bindgen<'_> {
    fn sources(&self) -> PathBuf {
        self.root.join("tools/wasm-bindgen")
    }

    fn version(&self) -> Result<String> {
        let tools = read_text(&self.sources().join("Cargo.lock"))?;
        let version = locked_version(&tools, "wasm-bindgen-cli")
            .context("tools/wasm-bindgen/Cargo.lock locks no wasm-bindgen-cli")?;
        let workspace = read_text(&self.root.join("Cargo.lock"))?;
        if let Some(library) = locked_version(&workspace, "wasm-bindgen") {
            ensure!(
                library == version,
                "Cargo.lock has wasm-bindgen {library}, tools/wasm-bindgen has {version}: glue and tools must agree; change both"
            );
        }
        Ok(version)
    }

    /// The installed programs' folder. What they do depends on their sources and not on the compiler that built them.
    fn installed(&self, version: &str) -> Result<PathBuf> {
        let files = [
            "Cargo.toml",
            "Cargo.lock",
            "src/bin/wasm-bindgen.rs",
            "src/bin/wasm-bindgen-test-runner.rs",
        ];
        let sources = files
            .iter()
            .map(|file| stamp::read(&self.sources().join(file)))
            .collect::<Result<Vec<_>>>()?;
        let fingerprint = stamp::fingerprint(&sources);
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        Ok(cache::dir()?.join(format!("wasm-bindgen-{version}-{arch}-{os}-{fingerprint}")))
    }
}

impl Step for Bindgen<'_> {
    type Tool = BindgenTools;
    const NAME: &'static str = "wasm-bindgen tools";
    const WORK: &'static str = "compiling them (3 to 4 minutes, once per user)";

    fn find(&self) -> Result<Option<BindgenTools>> {
        let version = self.version()?;
        let dir = self.installed(&version)?;
        let [wasm_bindgen, test_runner] = NAMES.map(|name| dir.join(name));
        let there = wasm_bindgen.is_file() && test_runner.is_file();
        Ok(there.then_some(BindgenTools {
            wasm_bindgen,
            test_runner,
            version,
        }))
    }

    fn make(&self) -> Result<BindgenTools> {
        let dir = self.installed(&self.version()?)?;
        let beside = |suffix: &str| {
            let mut path = dir.clone().into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        };
        let _held = cache::lock(&beside(".lock"))?;
        if let Some(tools) = self.find()? {
            return Ok(tools);
        }
        let build = beside(".build");
        let manifest = self.sources().join("Cargo.toml");
        process::run(
            Command::new("cargo")
                .current_dir(self.sources())
                .args(["build", "--release", "--locked", "--manifest-path"])
                .arg(manifest)
                .arg("--target-dir")
                .arg(&build),
        )?;
        // Renamed into place in one step: an interruption leaves no half of an installation.
        let staged = beside(".staged");
        fs::create_dir_all(&staged).with_context(|| format!("cannot make {}", staged.display()))?;
        for name in NAMES {
            let from = build.join("release").join(name);
            fs::copy(&from, staged.join(name))
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        fs::rename(&staged, &dir).with_context(|| format!("cannot make {}", dir.display()))?;
        fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
        self.find()?
            .context("the tools were built but are not where they were put")
    }
}

fn read_text(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The version that a `Cargo.lock` has of a package.
fn locked_version(lock: &str, package: &str) -> Option<String> {
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != format!("name = \"{package}\""))
        .skip(1);
    let version = lines
        .next()?
        .strip_prefix("version = \"")?
        .strip_suffix('"')?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::locked_version;

    const LOCK: &str = "[[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.130\"\n\n[[package]]\nname = \"other\"\nversion = \"1.0.0\"\n";

    #[test]
    fn a_locked_version_is_found_by_exact_name() {
        assert_eq!(
            locked_version(LOCK, "wasm-bindgen").as_deref(),
            Some("0.2.130")
        );
        assert_eq!(locked_version(LOCK, "wasm"), None);
    }
}
