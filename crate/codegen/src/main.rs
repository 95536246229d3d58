//! `codegen [--check]`: messages, service traits and the descriptor set of the backend's wire, from its .proto file.
//!
//! The outputs are checked in, so that nobody who builds the project needs this program, its dependencies or `protoc`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use prost::Message;

/// The source, relative to the workspace.
const PROTO_FOLDER: &str = "crate/streaming/proto";
const PROTO: &str = "xmtp_backend_v1.proto";
/// The messages, and the descriptor set that dynamic clients read.
const MESSAGES: &str = "crate/streaming/src/generated/xmtp_backend_v1.rs";
const DESCRIPTORS: &str = "crate/streaming/src/generated/xmtp_backend_v1.binpb";
/// The traits that a server implements.
const SERVICES: &str = "crate/dev-provider/src/backend/generated.rs";
/// What both generators call their output: the name of the package.
const GENERATED: &str = "xmtp.backend.v1.rs";
const NOTICE: &str = "// Written by `cargo xtask codegen` from crate/streaming/proto. Do not edit.\n";

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => bail!("usage: codegen [--check]"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut stale = Vec::new();
    for (name, content) in generate(&root)? {
        let path = root.join(name);
        if fs::read(&path).is_ok_and(|old| old == content) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            fs::write(&path, content).with_context(|| path.display().to_string())?;
            println!("{name}: written");
        }
    }
    ensure!(stale.is_empty(), "not what is generated: {}; run cargo xtask codegen", stale.join(", "));
    println!("what is generated is up to date");
    Ok(())
}

/// Every output, by its path relative to the workspace.
fn generate(root: &Path) -> Result<[(&'static str, Vec<u8>); 3]> {
    let descriptors = protox::compile([PROTO], [root.join(PROTO_FOLDER)])?;
    let scratch = Scratch::new()?;
    let mut messages = prost_build::Config::new();
    messages.out_dir(&scratch.0).enable_type_names().bytes(["."]);
    messages.compile_fds(descriptors.clone())?;
    let messages = scratch.take()?;
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(true)
        .build_transport(false)
        .extern_path(".xmtp.backend.v1", "::remuda_streaming::proto")
        .out_dir(&scratch.0)
        .compile_fds(descriptors.clone())?;
    let services = scratch.take()?;
    Ok([(MESSAGES, messages), (DESCRIPTORS, descriptors.encode_to_vec()), (SERVICES, services)])
}

/// A folder for what a generator writes, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("remuda-codegen-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// What was written, with the notice, and formatted as everything else is not: it is left as generated.
    fn take(&self) -> Result<Vec<u8>> {
        let path = self.0.join(GENERATED);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::remove_file(&path)?;
        Ok([NOTICE.as_bytes(), text.as_bytes()].concat())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in a temporary folder does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
