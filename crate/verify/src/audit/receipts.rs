//! Receipts that come outside deliveries: state frames of groups, and the results of somebody's own requests.

use remuda_wire::group::{DeliveryStateReceipt, DeliveryStateUpdate, GroupStateUpdate};
use remuda_wire::preimage::checkpoint_genesis;
use remuda_wire::response::{AppendResult, ResponseBody};
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};

use super::groups::{Followed, Groups};
use super::judge::Judge;
use super::provenance::Provenance;
use crate::authentic::Verified;
use crate::group::{Applied, GroupChain};

impl Judge {
    /// A mutation of one record's delivery.
    pub fn delivery_state(&mut self, item: usize, update: &DeliveryStateUpdate) {
        self.group_receipt(item, &update.receipt, |groups, provenance| {
            apply_update(item, &update.receipt, groups, provenance, |chain, receipt| {
                chain.apply_record(receipt, &update.state)
            })
        });
    }

    /// A mutation of a group.
    pub fn group_state(&mut self, item: usize, update: &GroupStateUpdate) {
        self.group_receipt(item, &update.receipt, |groups, provenance| {
            apply_update(item, &update.receipt, groups, provenance, |chain, receipt| {
                chain.apply_mutation(receipt, update.config.as_ref())
            })
        });
    }

    /// A frame of a group: of nobody's it is a finding, of a group whose judgement ended it says nothing.
    fn group_receipt(
        &mut self,
        item: usize,
        receipt: &DeliveryStateReceipt,
        apply: impl FnOnce(&mut Groups, &mut Provenance) -> Result<(), Refusal>,
    ) {
        let place = (receipt.lane_id, receipt.group_id);
        match self.groups.find(&place) {
            Followed::Unknown => self.find(item, ProtocolViolation::UnknownGroup),
            Followed::Ended => {}
            Followed::Chain(_) => {
                if let Err(refusal) = apply(&mut self.groups, &mut self.provenance) {
                    self.find(item, refusal);
                    self.end_group(&place);
                }
            }
        }
    }

    /// Results are authenticated; those of a followed group also take their place in its chain.
    pub fn response(&mut self, item: usize, body: &ResponseBody) {
        let judged: Result<(), Refusal> = match body {
            ResponseBody::Append(result) => self.append_result(item, result),
            ResponseBody::CommitKeyBatch(receipt) => {
                self.provenance.authenticate_key_batch(item, receipt).map_err(Refusal::from)
            }
            ResponseBody::CreateLane(lane) | ResponseBody::CloseLane(lane) => {
                self.provenance.authenticate(item, &lane.receipt).map(|_| ()).map_err(Refusal::from)
            }
            ResponseBody::CreateGroup(update)
            | ResponseBody::UpdateGroup(update)
            | ResponseBody::DeleteGroup(update) => match self.is_followed(&update.receipt) {
                true => return self.group_state(item, update),
                false => self.provenance.authenticate(item, &update.receipt).map(|_| ()).map_err(Refusal::from),
            },
            ResponseBody::Ack(update)
            | ResponseBody::Nack(update)
            | ResponseBody::Extend(update)
            | ResponseBody::Reject(update)
            | ResponseBody::Redrive(update) => match self.is_followed(&update.receipt) {
                true => return self.delivery_state(item, update),
                false => self.provenance.authenticate(item, &update.receipt).map(|_| ()).map_err(Refusal::from),
            },
            ResponseBody::BeginKeyBatch(_)
            | ResponseBody::PutKeyBatchChunk(_)
            | ResponseBody::ListLanes(_)
            | ResponseBody::OpenSubscription(_)
            | ResponseBody::CloseSubscription(_)
            | ResponseBody::Credit(_) => Ok(()),
        };
        if let Err(refusal) = judged {
            self.find(item, refusal);
        }
    }

    fn is_followed(&mut self, receipt: &DeliveryStateReceipt) -> bool {
        matches!(self.groups.find(&(receipt.lane_id, receipt.group_id)), Followed::Chain(_))
    }

    fn append_result(&mut self, item: usize, result: &AppendResult) -> Result<(), Refusal> {
        if let Some(watermark) = &result.durable_watermark {
            let genesis = checkpoint_genesis(&self.provenance.context, &self.provenance.stream_id);
            if watermark.last_durable_sequence.is_none() != (watermark.checkpoint_anchor == genesis) {
                return Err(ProtocolViolation::WatermarkAnchor.into());
            }
        }
        if let Some(receipt) = &result.append_receipt {
            self.provenance.authenticate(item, receipt)?;
        }
        Ok(())
    }
}

fn apply_update(
    item: usize,
    receipt: &DeliveryStateReceipt,
    groups: &mut Groups,
    provenance: &mut Provenance,
    apply: impl FnOnce(&mut GroupChain, &Verified<DeliveryStateReceipt>) -> Result<Applied, VerifyError>,
) -> Result<(), Refusal> {
    let receipt = provenance.authenticate(item, receipt)?;
    if let Followed::Chain(chain) = groups.find(&(receipt.lane_id, receipt.group_id)) {
        apply(chain, &receipt)?;
    }
    Ok(())
}
