//! `remuda-dev-provider serve --data DIR`.

use clap::{Args, Parser, Subcommand};
use remuda_dev_provider::server;
use remuda_dev_provider::settings::{FeedsSettings, Settings};

/// A development provider of CBQS streams. Never for production.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Serve {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    feeds: FeedsSettings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the dev chain, its one fast stream and the pages until SIGTERM or SIGINT.
    Serve(Box<Serve>),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .init();
    match Arguments::parse().command {
        Command::Serve(serve) => server::serve(serve.settings, serve.feeds).await,
    }
}
