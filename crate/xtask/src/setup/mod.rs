//! Making every tool available, idempotently, from package registries alone where nothing else can be reached.
//!
//! A tool is a [`Step`]: `find` answers quickly whether it is there, `make` does the long work once. Commands ask
//! [`Setup`] for just the tools that they use; `cargo xtask setup` asks for all.

mod bindgen;
mod browser;
mod cache;
mod node;
mod wasm_target;

use std::time::Instant;

use anyhow::{Context, Result};

pub use self::bindgen::BindgenTools;
pub use self::browser::Browser;
pub use self::node::NodeTools;
pub use self::wasm_target::WasmToolchain;
use crate::workspace::Workspace;

/// One tool that has to be available.
trait Step {
    /// What a caller needs to use the tool.
    type Tool;
    /// What the progress lines call it.
    const NAME: &'static str;
    /// What making it does, and about how long that takes.
    const WORK: &'static str;

    /// The tool, if it is there already. Quick: it runs before every command.
    fn find(&self) -> Result<Option<Self::Tool>>;

    /// Makes the tool available.
    fn make(&self) -> Result<Self::Tool>;
}

/// Hands out tools, making those that are missing.
pub struct Setup<'a> {
    workspace: &'a Workspace,
}

impl<'a> Setup<'a> {
    /// Nothing is looked for until a tool is asked for.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self { workspace }
    }

    /// Makes everything available, with a progress line for each step.
    pub fn everything(workspace: &'a Workspace) -> Result<()> {
        let started = Instant::now();
        let mut number = 0;
        let mut label = || {
            number += 1;
            Label {
                numbered: Some((number, 4)),
            }
        };
        label().ready(&wasm_target::WasmTarget {
            root: &workspace.root,
        })?;
        label().ready(&bindgen::Bindgen {
            root: &workspace.root,
        })?;
        label().ready(&node::NodePackages {
            root: &workspace.root,
        })?;
        label().ready(&browser::HeadlessBrowser)?;
        eprintln!(
            "[setup] everything is there ({:.1} s)",
            started.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// A compiler that builds for wasm32.
    pub fn wasm_toolchain(&self) -> Result<WasmToolchain> {
        Label::PARTIAL.ready(&wasm_target::WasmTarget {
            root: &self.workspace.root,
        })
    }

    /// `wasm-bindgen` and its test runner.
    pub fn bindgen(&self) -> Result<BindgenTools> {
        Label::PARTIAL.ready(&bindgen::Bindgen {
            root: &self.workspace.root,
        })
    }

    /// Node.js and the installed npm packages.
    pub fn node(&self) -> Result<NodeTools> {
        Label::PARTIAL.ready(&node::NodePackages {
            root: &self.workspace.root,
        })
    }

    /// Chromium and its driver.
    pub fn browser(&self) -> Result<Browser> {
        Label::PARTIAL.ready(&browser::HeadlessBrowser)
    }
}

/// How a step's progress lines begin.
struct Label {
    numbered: Option<(u8, u8)>,
}

impl Label {
    /// For the steps that one command needs: silent where the tool is there.
    const PARTIAL: Self = Self { numbered: None };

    fn ready<S: Step>(&self, step: &S) -> Result<S::Tool> {
        let name = S::NAME;
        let prefix = match self.numbered {
            Some((number, total)) => format!("[setup {number}/{total}] {name} …"),
            None => format!("[setup] {name} …"),
        };
        let context = || format!("setting up: {name}");
        if let Some(tool) = step.find().with_context(context)? {
            if self.numbered.is_some() {
                eprintln!("{prefix} done (cached)");
            }
            return Ok(tool);
        }
        eprintln!("{prefix} {}", S::WORK);
        let started = Instant::now();
        let tool = step.make().with_context(context)?;
        eprintln!("{prefix} done ({:.0} s)", started.elapsed().as_secs_f64());
        Ok(tool)
    }
}
