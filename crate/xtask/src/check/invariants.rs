//! Words that only some files may contain, because each stands for a duty that is fulfilled in one place.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::PURE;
use crate::workspace::Workspace;

/// A word, and where it may be.
struct Rule {
    word: &'static str,
    place: Place,
    why: &'static str,
}

enum Place {
    /// In files whose path begins with one of these.
    Only(&'static [&'static str]),
    /// Anywhere but in pure crates.
    NotInPure,
}

const BROWSER: Place = Place::Only(&["crate/web/", "crate/wasm/", "tests-wasm/"]);

const RULES: [Rule; 7] = [
    Rule {
        word: "tiny_keccak",
        place: Place::Only(&["crate/wire/src/preimage.rs"]),
        why: "what is hashed is written down in one place",
    },
    Rule {
        word: "verify_strict",
        place: Place::Only(&["crate/testkit/src/edge_signature.rs"]),
        why: "signatures are judged in one place, and the library only where that place is compared with it",
    },
    Rule {
        word: "subtle.verify",
        place: Place::Only(&["pkg/src/holder-key.ts"]),
        why: "browsers accept signatures that strict verification refuses: they judge none but a holder key's own",
    },
    Rule { word: "web_sys", place: BROWSER, why: "only web and wasm know the browser" },
    Rule { word: "js_sys", place: BROWSER, why: "only web and wasm know the browser" },
    Rule { word: "std::time", place: Place::NotInPure, why: "time is an argument" },
    Rule { word: "getrandom", place: Place::NotInPure, why: "random bytes are an input" },
];

/// One line for each word in a place where it may not be.
pub fn violations(workspace: &Workspace) -> Result<Vec<String>> {
    let pure: Vec<_> =
        PURE.iter().filter_map(|name| workspace.package(name)).map(|package| package.dir.as_path()).collect();
    let mut files = Vec::new();
    for folder in ["crate", "tests-wasm", "pkg/src", "www"] {
        source_files(&workspace.root.join(folder), &mut files)?;
    }
    // This file names all the words.
    files.retain(|file| !file.starts_with(workspace.root.join("crate/xtask")));
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(&workspace.root).unwrap_or(&file).display().to_string();
        let is_pure = pure.iter().any(|dir| file.starts_with(dir.join("src")));
        found.extend(misplaced(&name, &text, is_pure));
    }
    Ok(found)
}

/// One line for each word in a file of this name where it may not be.
fn misplaced(name: &str, text: &str, is_pure: bool) -> Vec<String> {
    let allows = |rule: &Rule| match rule.place {
        Place::Only(places) => places.iter().any(|place| name.starts_with(place)),
        Place::NotInPure => !is_pure,
    };
    let lines = RULES.iter().filter(|rule| !allows(rule)).flat_map(|rule| {
        let told = |line| format!("{name}:{line}: `{}` may not be here: {}", rule.word, rule.why);
        uses(text, rule.word).map(told)
    });
    lines.collect()
}

/// The numbers of the lines that contain the word outside a comment.
fn uses<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let lines = text.lines().enumerate();
    lines
        .filter(move |(_, line)| line.split("//").next().is_some_and(|code| code.contains(word)))
        .map(|(index, _)| index + 1)
}

fn source_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != "node_modules" {
            source_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "ts") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{misplaced, uses};

    #[test]
    fn comments_do_not_count() {
        let text = "// verify_strict\nlet a = key.verify_strict(m); // here\n/// [`verify_strict`]\n";
        assert_eq!(uses(text, "verify_strict").collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn only_the_holder_key_is_tried_by_the_platform() {
        let call = "await crypto.subtle.verify(\"Ed25519\", key, signature, digest)";
        assert_eq!(misplaced("pkg/src/holder-key.ts", call, false), Vec::<String>::new());
        assert_eq!(misplaced("pkg/src/remuda.ts", call, false).len(), 1);
        assert_eq!(misplaced("crate/verify/src/signature.rs", "key.verify_strict(message)", true).len(), 1);
    }
}
