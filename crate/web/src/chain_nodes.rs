//! Broker states over HTTP (`RESOLUTIONS.md` §4), from one node or agreed on by several.

use std::rc::Rc;

use futures_util::stream::FuturesUnordered;
use futures_util::StreamExt;
use remuda_client::{ChainAnswer, ChainConclusion, ChainQuorum, ChainReadError};
use remuda_session::Transport;
use remuda_wire::context::FinalizedView;
use remuda_wire::Bytes32;

use crate::dial::{Endpoint, PlainLoopback};
use crate::driver::transport_error;
use crate::fetch::{self, ExchangeLimits, HttpFault};

/// A broker state is a few kilobytes.
const LIMITS: ExchangeLimits = ExchangeLimits { max_body_bytes: 256 * 1024, timeout_ms: 20_000 };

/// The nodes that are asked, and how many of them must agree.
#[derive(Clone, Debug)]
pub struct ChainNodes {
    nodes: Rc<[String]>,
    quorum: ChainQuorum,
}

impl ChainNodes {
    /// Nodes by their base URL. Without a `quorum` more than half of them must agree.
    ///
    /// `None` without a node, and for a quorum that is not more than half of them or is more than all.
    pub fn new(nodes: Vec<String>, quorum: Option<usize>) -> Option<Self> {
        let quorum = match quorum {
            Some(needed) => ChainQuorum::new(needed, nodes.len())?,
            None => ChainQuorum::majority(nodes.len()),
        };
        (!nodes.is_empty()).then(|| Self { nodes: nodes.into(), quorum })
    }

    /// Reads the latest view of a stream, or the one given.
    ///
    /// # Errors
    /// [`ChainReadError`].
    pub async fn read(&self, stream_id: Bytes32, view: Option<&FinalizedView>, plain: PlainLoopback) -> ChainAnswer {
        match self.ask(stream_id, view, plain).await {
            ChainConclusion::Settled(answer) => answer,
            ChainConclusion::Pin(common) => match self.ask(stream_id, Some(&common), plain).await {
                ChainConclusion::Settled(answer) => answer,
                ChainConclusion::Pin(_) => Err(ChainReadError::Disagreement),
            },
        }
    }

    /// Asks every node, and no longer than until enough have given the same answer.
    async fn ask(&self, stream_id: Bytes32, view: Option<&FinalizedView>, plain: PlainLoopback) -> ChainConclusion {
        let asked = self.nodes.iter().map(|node| get(node, stream_id, view, plain));
        let mut asked: FuturesUnordered<_> = asked.collect();
        let mut answers = Vec::new();
        while let Some(answer) = asked.next().await {
            answers.push(answer);
            if let Some(agreed) = self.quorum.agreed(&answers) {
                return ChainConclusion::Settled(agreed.clone());
            }
        }
        self.quorum.conclude(view, &answers)
    }
}

async fn get(node: &str, stream_id: Bytes32, view: Option<&FinalizedView>, plain: PlainLoopback) -> ChainAnswer {
    let node = node.trim_end_matches('/');
    let pin = view.map_or_else(String::new, |view| format!("&block={}", view.block_hash));
    let uri = format!("{node}/cbqs/broker-state?stream={stream_id}{pin}");
    let answer = match Endpoint::admit(&uri, Transport::LongPoll, plain) {
        Ok(endpoint) => fetch::get(&endpoint, LIMITS, None).await,
        Err(refused) => Err(HttpFault::Other(refused.to_string())),
    };
    answer.map_err(|fault| match fault {
        HttpFault::Http { status: 410 } => ChainReadError::Gone,
        HttpFault::Http { status: 404 } => ChainReadError::NotFound,
        fault => ChainReadError::Transport(transport_error(&fault)),
    })
}
