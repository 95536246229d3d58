//! Which crate may name which, as `crate/ARCHITECTURE.md` draws it.
//!
//! ```text
//! wire <- verify <- position <- client <- web <- wasm
//! wire <- session <- client          wire <- streaming <- position, session
//! verify <- watchtower <- web     wire <- bps <- web
//! ```
//!
//! The provider shares no machine with the client: it never names session, position or client, so that one
//! misunderstanding cannot pass on both sides.

use anyhow::{bail, Result};

use super::invariants;
use crate::workspace::{Package, Workspace};

/// A crate, and those that it may name in what it ships. Names without `remuda-`.
const MAY_NAME: [(&str, &[&str]); 20] = [
    ("wire", &[]),
    ("streaming", &["wire"]),
    ("verify", &["wire"]),
    ("watchtower", &["wire", "verify"]),
    ("bps", &["wire"]),
    ("session", &["wire", "streaming"]),
    ("position", &["wire", "verify", "streaming"]),
    ("client", &["wire", "verify", "position", "session", "streaming", "watchtower", "bps"]),
    ("web", &["wire", "verify", "position", "session", "client", "streaming", "watchtower", "bps"]),
    ("wasm-js", &["wire", "position", "client"]),
    (
        "wasm-client",
        &["wire", "verify", "position", "session", "client", "web", "streaming", "watchtower", "bps", "wasm-js"],
    ),
    ("wasm-recovery", &["watchtower"]),
    ("wasm-inspect", &["wire", "verify"]),
    ("wasm-feeds", &["wire", "verify", "position", "session", "client", "web", "watchtower", "bps", "wasm-js"]),
    ("wasm-verifier", &["wire", "verify", "streaming", "watchtower", "bps"]),
    ("dev-provider", &["wire", "verify", "streaming", "watchtower", "bps"]),
    ("testkit", &["wire", "verify", "position", "session", "client", "streaming", "watchtower", "bps"]),
    ("xtask", &[]),
    ("codegen", &[]),
    (
        "tests-wasm",
        &["wire", "verify", "position", "session", "client", "web", "streaming", "watchtower", "bps", "testkit"],
    ),
];

/// Checks the dependencies of every crate and the words that only some files may contain.
pub fn run(workspace: &Workspace) -> Result<()> {
    let mut violations: Vec<_> = workspace.packages.iter().flat_map(violations_of).collect();
    violations.extend(invariants::violations(workspace)?);
    if violations.is_empty() {
        println!("{} crates name only what they may", workspace.packages.len());
        return Ok(());
    }
    bail!("layers are violated:\n  {}", violations.join("\n  "))
}

fn violations_of(package: &Package) -> Vec<String> {
    let name = short(&package.name);
    // The crates in tests-wasm differ by host, not by what they may see.
    let layer = if name.starts_with("tests-wasm") { "tests-wasm" } else { name };
    let Some((_, allowed)) = MAY_NAME.iter().find(|(layer_name, _)| *layer_name == layer) else {
        return vec![format!("{}: has no layer; give it one in crate/xtask/src/check/layers.rs", package.name)];
    };
    let ours = package.dependencies.iter().filter(|dependency| dependency.name.starts_with("remuda-"));
    ours.filter(|dependency| {
        let other = short(&dependency.name);
        let for_tests = dependency.dev
            && match other {
                "testkit" => true,
                "dev-provider" => matches!(name, "client" | "testkit"),
                // A crate's own tests switch features of it on that way.
                own => own == name,
            };
        !(allowed.contains(&other) || for_tests)
    })
    .map(|dependency| format!("{} may not name {}", package.name, dependency.name))
    .collect()
}

fn short(name: &str) -> &str {
    name.strip_prefix("remuda-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::violations_of;
    use crate::workspace::{Dependency, Package};

    fn package(name: &str, dependency: &str, dev: bool) -> Package {
        let dependencies = vec![Dependency { name: dependency.into(), dev }];
        Package { name: name.into(), dir: "x".into(), dependencies }
    }

    #[test]
    fn downwards_is_allowed_and_upwards_is_not() {
        assert!(violations_of(&package("remuda-verify", "remuda-wire", false)).is_empty());
        assert_eq!(violations_of(&package("remuda-wire", "remuda-verify", false)).len(), 1);
        assert_eq!(violations_of(&package("remuda-wire", "remuda-verify", true)).len(), 1);
    }

    #[test]
    fn the_provider_shares_no_machine_with_the_client() {
        for machine in ["remuda-session", "remuda-position", "remuda-client"] {
            assert_eq!(violations_of(&package("remuda-dev-provider", machine, false)).len(), 1);
            assert_eq!(violations_of(&package("remuda-dev-provider", machine, true)).len(), 1);
        }
    }

    #[test]
    fn the_testkit_is_for_tests_alone() {
        assert!(violations_of(&package("remuda-client", "remuda-testkit", true)).is_empty());
        assert_eq!(violations_of(&package("remuda-client", "remuda-testkit", false)).len(), 1);
        assert!(violations_of(&package("remuda-tests-wasm-vectors", "remuda-testkit", false)).is_empty());
    }

    #[test]
    fn a_new_crate_needs_a_layer() {
        assert_eq!(violations_of(&package("remuda-mystery", "serde", false)).len(), 1);
    }
}
