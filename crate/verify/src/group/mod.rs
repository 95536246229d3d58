//! Consumer groups (§11.2, §13.1, §14.2): one receipt chain per group, and what its receipts may say.
//!
//! ```text
//! group:   (absent) --GroupCreate--> alive --GroupUpdate--> alive --GroupDelete--> deleted, for ever
//!
//! cycle:   waiting --LeaseIssue(attempt + 1)--> leased --Extend--> leased
//!             ^                                   | Nack, to retry                    --> waiting
//!             |                                   | LeaseExpire                       --> expired
//!          expired --LeaseIssue(attempt + 1)--> leased
//!          leased  --Ack, Reject, Nack at last, AttemptsExhaust, RecordExpire(lease)  --> terminal
//!          expired --AttemptsExhaust(that lease), RecordExpire                        --> terminal
//!          waiting --RecordExpire                                                     --> terminal
//!          terminal --Redrive, once--> terminal, and a successor cycle waits at the tail
//! ```
//! A group followed from its genesis is judged whole. After a cursor, cycles and configuration that were never seen are
//! taken as they come; the chain, derived identifiers and positions are judged all the same.
//!
//! A refusal changes nothing: the state after it is the state before it.

mod chain;
mod cycle;
mod queue;
mod segment;
mod subscription;
#[cfg(test)]
mod tests;

pub use chain::{Applied, GroupChain, GroupName};
pub use segment::GroupSegment;
pub use subscription::{GroupSubscription, GroupSubscriptionConfig};
