//! Node.js and the npm packages of the root's `package-lock.json`, wasm-opt among them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde_json::Value;

use super::Step;
use crate::process;
use crate::stamp::{self, Stamp};
use crate::workspace::list;

/// The oldest Node.js that Vite supports.
const OLDEST: (u32, u32) = (20, 19);

/// Runs npm's scripts and installed programs.
pub struct NodeTools {
    root: PathBuf,
}

impl NodeTools {
    /// `npm`, at the project's root. No package may download a browser of its own.
    pub fn npm(&self) -> Command {
        let mut command = Command::new("npm");
        command
            .current_dir(&self.root)
            .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
        command
    }

    /// Whether a workspace's package.json has a script of that name.
    pub fn has_script(&self, folder: &str, name: &str) -> bool {
        manifest(&self.root, folder).is_ok_and(|manifest| manifest["scripts"][name].is_string())
    }

    /// A program that an npm package installed.
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.root.join("node_modules/.bin").join(name))
    }
}

pub(super) struct NodePackages<'a> {
    pub root: &'a Path,
}

impl NodePackages<'_> {
    fn stamp(&self) -> Result<Stamp> {
        let mut inputs =
            vec![
                String::from_utf8_lossy(&stamp::read(&self.root.join("package-lock.json"))?)
                    .into_owned(),
            ];
        // What a package.json asks for is compared too, so that `npm ci` can say that the lockfile does not have it.
        let root = manifest(self.root, "")?;
        let workspaces = list(&root["workspaces"]).iter().filter_map(Value::as_str);
        for folder in std::iter::once("").chain(workspaces) {
            let manifest = manifest(self.root, folder)?;
            inputs.extend(
                ["dependencies", "devDependencies", "peerDependencies"]
                    .map(|key| manifest[key].to_string()),
            );
        }
        Ok(Stamp::new(
            self.root.join("node_modules/.remuda-stamp"),
            &inputs,
        ))
    }

    fn tools(&self) -> NodeTools {
        NodeTools {
            root: self.root.to_path_buf(),
        }
    }
}

impl Step for NodePackages<'_> {
    type Tool = NodeTools;
    const NAME: &'static str = "npm packages";
    const WORK: &'static str = "npm ci (about 20 seconds)";

    fn find(&self) -> Result<Option<NodeTools>> {
        Ok(self.stamp()?.is_current().then(|| self.tools()))
    }

    fn make(&self) -> Result<NodeTools> {
        let (major, minor) = OLDEST;
        let install = format!("install Node.js {major}.{minor} or newer, with npm");
        let version = process::output(Command::new("node").arg("--version"))
            .with_context(|| install.clone())?;
        ensure!(
            parse_version(&version).is_some_and(|found| found >= OLDEST),
            "Node.js is {}; {install}",
            version.trim()
        );
        let stamp = self.stamp()?;
        stamp.clear()?;
        let tools = self.tools();
        process::run(tools.npm().arg("ci")).context(
            "npm ci (if package.json changed: `npm install`, and commit package-lock.json)",
        )?;
        stamp.write()?;
        Ok(tools)
    }
}

fn manifest(root: &Path, folder: &str) -> Result<Value> {
    let file = root.join(folder).join("package.json");
    serde_json::from_slice(&stamp::read(&file)?)
        .with_context(|| format!("{} is not JSON", file.display()))
}

/// Major and minor of `v20.19.4`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{parse_version, OLDEST};

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(parse_version("v20.19.4\n"), Some((20, 19)));
        assert!(parse_version("v20.9.0").unwrap() < OLDEST);
        assert!(parse_version("v22.1.0").unwrap() > OLDEST);
        assert_eq!(parse_version("20"), None);
    }
}
