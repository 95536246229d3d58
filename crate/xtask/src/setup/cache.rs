//! The per-user folder for tools that outlive one clone of the project.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// `$XDG_CACHE_HOME/remuda`, else `~/.cache/remuda`.
pub fn dir() -> Result<PathBuf> {
    let base =
        match env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => PathBuf::from(env::var_os("HOME").context(
                "neither XDG_CACHE_HOME nor HOME is set: there is nowhere to keep tools",
            )?)
            .join(".cache"),
        };
    Ok(base.join("remuda"))
}

/// Waits until no other process holds the lock at `file`, and holds it until the result is dropped.
pub fn lock(file: &Path) -> Result<File> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let held = File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
    if held.try_lock().is_err() {
        eprintln!("waiting for another set-up, which holds {}", file.display());
        held.lock()
            .with_context(|| format!("cannot lock {}", file.display()))?;
    }
    Ok(held)
}
