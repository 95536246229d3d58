//! Running the provider from its first transition to its clean marker.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::serve::ListenerExt;
use remuda_wire::{Bytes32, Canonical};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::backend::Backend;
use crate::broker::Broker;
use crate::chain::{stream_config, Chain, Genesis};
use crate::exchange::Exchange;
use crate::fault::Faults;
use crate::groups::Groups;
use crate::http::{router, Site};
use crate::key_stream::KeyStream;
use crate::keys::{random32, DevKeys};
use crate::lane_book::LaneBook;
use crate::lanes::demo_lanes;
use crate::lie::{Liar, Lie};
use crate::log::{Log, LogOf};
use crate::session::Sessions;
use crate::settings::{FeedsSettings, Settings};
use crate::signal::Signal;
use crate::store::Store;
use crate::time::Clock;
use crate::{bps, pages, watchtower, writer};

/// How long open responses may take after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// Serves until SIGTERM or SIGINT, then commits what is open and says so durably.
///
/// # Errors
/// When the address or the store cannot be used.
pub async fn serve(settings: Settings, feeds: FeedsSettings) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(settings.listen).await.with_context(|| format!("cannot listen on {}", settings.listen))?;
    let address = listener.local_addr()?;
    let (stop, closing) = watch::channel(false);
    let store = Arc::new(Store::open(&settings.data)?);
    let site = Arc::new(site(&settings, store, Clock::System, &address.to_string(), closing.clone())?);
    let broker = Arc::clone(&site.exchange.broker);
    tokio::spawn(Arc::clone(&broker).run());
    tokio::spawn(advance(Arc::clone(&broker.chain), settings.block_ms));
    tokio::spawn(collect(Arc::clone(&site), closing.clone()));
    if settings.writer > 0 {
        anyhow::ensure!(!settings.encrypted, "the writer has no key for an encrypted stream");
        tokio::spawn(writer::run(Arc::clone(&site), settings.writer));
    }
    let backend = Backend::new(settings.backend, closing.clone());
    let feeds = watchtower::open(&feeds.watchtower, Clock::System)?.merge(bps::open(&feeds.bps, Clock::System)?);
    let routes = router(site, feeds, settings.pages.as_deref(), settings.control).merge(backend.routes());
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
    });
    let mut stopped = closing;
    let serving = axum::serve(listener, routes).with_graceful_shutdown(async move {
        // An error means that the sender is gone, which is a stop as well.
        let _ = stopped.wait_for(|stop| *stop).await;
    });
    let serving = tokio::spawn(async move { serving.await });
    let stop_asked = stop_signal()?;
    let pages = settings.pages.iter().flat_map(|directory| pages::names(directory));
    let pages = pages.map(|page| format!("  http://{address}/{page}\n"));
    let told = [format!("remuda-dev-provider listening on http://{address}\n")].into_iter().chain(pages);
    // Whoever started it may have read enough and closed its end: that is no reason not to serve.
    let _ = std::io::stdout().write_all(told.collect::<String>().as_bytes());
    stop_asked.await;
    broker.close().await?;
    stop.send_replace(true);
    let _ = tokio::time::timeout(GRACE, serving).await;
    Ok(())
}

/// Begins the next epoch of `store`: everything but the tasks, of which [`Broker::run`] makes batches durable, and the
/// listener. `address` is where it is reached; `closing` becomes true when it ends.
///
/// # Errors
/// When the store fails.
pub fn site(
    settings: &Settings,
    store: Arc<Store>,
    clock: Clock,
    address: &str,
    closing: watch::Receiver<bool>,
) -> anyhow::Result<Site> {
    let seed = Bytes32::from_bytes(&store.meta_or("seed", || Ok(random32()?.to_bytes()))?)?;
    let keys = Arc::new(DevKeys::from_seed(seed));
    let class = settings.class.delivery();
    let mut config = stream_config(class, settings.batch_ms, settings.batch_records);
    config.retention_ms = settings.retention_ms.unwrap_or(config.retention_ms);
    config.retained_bytes_limit = settings.retained_bytes.unwrap_or(config.retained_bytes_limit);
    config.max_lanes = settings.max_lanes.unwrap_or(config.max_lanes);
    let genesis = Genesis { config, class, encrypted: settings.encrypted };
    // A chain record can only hold an https endpoint; what is dialled in development is the same address without TLS.
    let chain = Chain::open(Arc::clone(&store), &keys, &format!("https://{address}/cbqs"), &genesis, clock)?;
    let (chain, signal) = (Arc::new(chain), Signal::default());
    let stream_id = chain.stream_id();
    let lanes = demo_lanes(&stream_id, settings.lanes);
    let book = LaneBook::open(Arc::clone(&store), &stream_id, lanes.iter().map(|lane| lane.id))?;
    let log = |of, stream_id| {
        let (store, chain, keys) = (Arc::clone(&store), Arc::clone(&chain), Arc::clone(&keys));
        Log::open(of, stream_id, store, chain, keys, signal.clone()).map(Arc::new)
    };
    let key_stream = chain.records().key_stream.as_ref().map(|stream| stream.stream_id);
    let main = log(LogOf::Main, stream_id)?;
    let key_stream = match key_stream {
        Some(id) => Some(Arc::new(KeyStream::open(log(LogOf::Key, id)?, stream_id)?)),
        None => None,
    };
    let decoys = settings.lies.contains(&Lie::InjectRecord);
    let broker = Broker::open(store, chain, keys, decoys)?;
    let exchange = Exchange {
        broker,
        liar: Liar::new(settings.lies.clone(), settings.lie_after),
        append_window: std::sync::Mutex::default(),
        faults: Faults::default(),
        sessions: Sessions::default(),
        groups: Arc::new(Groups::open(Arc::clone(&main))?),
        log: main,
        key_stream,
        lanes: book,
        lane_changes: tokio::sync::Mutex::default(),
        signal,
        poll: Duration::from_millis(settings.poll_ms),
        session_ms: settings.session_ms,
        closing,
    };
    let (endpoint, web_socket) = (format!("http://{address}/cbqs"), format!("ws://{address}/cbqs"));
    Ok(Site { exchange, lanes, endpoint, web_socket })
}

/// Prunes ten times in the retention of the stream, at most each tenth of a second.
async fn collect(site: Arc<Site>, mut closing: watch::Receiver<bool>) {
    loop {
        let retention_ms = site.exchange.broker.chain.records().stream.config.retention_ms;
        let pause = Duration::from_millis((retention_ms / 10).clamp(100, 60_000));
        tokio::select! {
            _ = closing.changed() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let collecting = Arc::clone(&site);
        match tokio::task::spawn_blocking(move || collecting.exchange.collect()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::error!(%error, "nothing is pruned"),
            Err(error) => tracing::error!(%error, "nothing is pruned"),
        }
    }
}

async fn advance(chain: Arc<Chain>, block_ms: u64) {
    if block_ms == 0 {
        return;
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(block_ms));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let advancing = Arc::clone(&chain);
        match tokio::task::spawn_blocking(move || advancing.advance()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the chain stands still"),
            Err(error) => tracing::error!(%error, "the chain stands still"),
        }
    }
}

/// Ends at the first SIGTERM or SIGINT after this call.
#[cfg(unix)]
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{signal, SignalKind};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Ends at the first Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "no signals");
        }
    })
}
