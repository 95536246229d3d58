//! A Chromium and the driver that belongs to it: named by the environment, found on `PATH`, or installed with apt.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

use super::Step;
use crate::process;

/// Where the browser and its driver are.
#[derive(Clone)]
pub struct Browser {
    /// The browser itself.
    pub chromium: PathBuf,
    /// Its WebDriver server.
    pub chromedriver: PathBuf,
}

pub(super) struct HeadlessBrowser;

impl Step for HeadlessBrowser {
    type Tool = Browser;
    const NAME: &'static str = "headless browser";
    const WORK: &'static str = "apt-get install chromium chromium-driver (about a minute)";

    fn find(&self) -> Result<Option<Browser>> {
        let chromium = locate(
            "CHROMIUM",
            &[
                "chromium",
                "chromium-browser",
                "google-chrome",
                "google-chrome-stable",
            ],
        )?;
        let chromedriver = locate("CHROMEDRIVER", &["chromedriver"])?;
        Ok(chromium
            .zip(chromedriver)
            .map(|(chromium, chromedriver)| Browser {
                chromium,
                chromedriver,
            }))
    }

    fn make(&self) -> Result<Browser> {
        let advice = "install Chromium and chromedriver of the same version, and put both on PATH or name them by CHROMIUM and CHROMEDRIVER";
        if on_path("apt-get").is_none() {
            bail!("no Chromium with a chromedriver was found, and there is no apt-get to install them: {advice}");
        }
        // A failing update is no reason to stop: the lists may be good enough.
        if let Err(error) = process::run(apt_get()?.args(["-q", "update"])) {
            eprintln!("[setup] {error:#}; going on with the package lists that are there");
        }
        let install = [
            "-q",
            "install",
            "-y",
            "--no-install-recommends",
            "chromium",
            "chromium-driver",
        ];
        process::run(apt_get()?.args(install)).context(advice)?;
        self.find()?.with_context(|| format!("apt-get installed chromium and chromium-driver, but they are not on PATH: {advice}"))
    }
}

fn apt_get() -> Result<Command> {
    let root = process::output(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new(if root { "env" } else { "sudo" });
    if !root {
        command.arg("env");
    }
    command.args([
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-o",
        "DPkg::Lock::Timeout=600",
    ]);
    Ok(command)
}

/// The program that the variable names, else the first of `names` on `PATH`.
fn locate(variable: &str, names: &[&str]) -> Result<Option<PathBuf>> {
    if let Some(path) = env::var_os(variable).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        ensure!(
            path.is_file(),
            "{variable} names {}, which is not a file",
            path.display()
        );
        return Ok(Some(path));
    }
    Ok(names.iter().find_map(|name| on_path(name)))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
