//! As much of the WebAssembly binary format as it takes to list a module's imports.

use anyhow::{bail, ensure, Context, Result};

const IMPORT_SECTION: u8 = 2;

/// The imports of a module, each as `module.name`.
pub fn imports(wasm: &[u8]) -> Result<Vec<String>> {
    ensure!(
        wasm.starts_with(b"\0asm\x01\0\0\0"),
        "not a WebAssembly module"
    );
    let mut module = Bytes(wasm.get(8..).unwrap_or_default());
    let mut found = Vec::new();
    while !module.0.is_empty() {
        let id = module.byte()?;
        let mut section = Bytes(module.vector()?);
        if id != IMPORT_SECTION {
            continue;
        }
        for _ in 0..section.number()? {
            let [from, name] = [section.vector()?, section.vector()?].map(String::from_utf8_lossy);
            found.push(format!("{from}.{name}"));
            section.import_kind()?;
        }
    }
    Ok(found)
}

/// What is left to read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.0.split_first().context("the module ends too early")?;
        self.0 = rest;
        Ok(*first)
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        bail!("a number of more than 64 bits")
    }

    /// A length and as many bytes.
    fn vector(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?)?;
        let (vector, rest) = self
            .0
            .split_at_checked(length)
            .context("the module ends too early")?;
        self.0 = rest;
        Ok(vector)
    }

    fn limits(&mut self) -> Result<()> {
        if self.byte()? & 1 == 1 {
            self.number()?;
        }
        self.number().map(drop)
    }

    /// Skips what an import says of its kind: function, table, memory, global or tag.
    fn import_kind(&mut self) -> Result<()> {
        match self.byte()? {
            0 => self.number().map(drop),
            1 => self.byte().and_then(|_| self.limits()),
            2 => self.limits(),
            3 | 4 => self.byte().and_then(|_| self.number()).map(drop),
            kind => bail!("an import of unknown kind {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::imports;

    #[test]
    fn imports_are_listed() {
        // A type section, then the imports env.now (function 0) and env.memory (a memory of 1 to 2 pages).
        let wasm = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7e\x02\x1a\x02\x03env\x03now\0\0\x03env\x06memory\x02\x01\x01\x02";
        assert_eq!(imports(wasm).unwrap(), ["env.now", "env.memory"]);
    }

    #[test]
    fn a_module_without_imports_lists_none() {
        assert!(imports(b"\0asm\x01\0\0\0").unwrap().is_empty());
    }

    #[test]
    fn a_truncated_module_is_an_error() {
        assert!(imports(b"\0asm\x01\0\0\0\x02\x19\x02\x03en").is_err());
        assert!(imports(b"<html>").is_err());
    }
}
