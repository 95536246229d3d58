//! Stamps: a small file beside something made, naming what it was made from, so that making it again can be skipped.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A fingerprint of what something is made from, and the file that remembers it.
pub struct Stamp {
    file: PathBuf,
    value: String,
}

impl Stamp {
    /// The stamp kept in `file` for something made from `inputs`.
    pub fn new<T: Hash>(file: PathBuf, inputs: &[T]) -> Self {
        Self {
            file,
            value: fingerprint(inputs),
        }
    }

    /// Whether what was made last was made from the same inputs.
    pub fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|text| text == self.value)
    }

    /// Forgets what was made, so that an interruption while making it again is noticed.
    pub fn clear(&self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| self.file.display().to_string())
            }
            _ => Ok(()),
        }
    }

    /// Remembers that it is made.
    pub fn write(&self) -> Result<()> {
        write(&self.file, &self.value)
    }
}

/// Sixteen hex digits of `inputs`, in their order. Tells versions apart; no defence against forgery.
pub fn fingerprint<T: Hash>(inputs: &[T]) -> String {
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Reads a file, naming it where that fails.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Writes a file and the folders above it, naming it where that fails.
pub fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
