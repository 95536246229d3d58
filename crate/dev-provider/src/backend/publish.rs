//! `PublishService`.

use prost::{Message, Name};
use remuda_streaming::bound::MAX_ENVELOPE_BYTES;
use remuda_streaming::proto::client_envelope::Payload;
use remuda_streaming::proto::publish_error::Reason;
use remuda_streaming::proto::{self, welcome_message};
use remuda_streaming::{Topic, TopicKind};
use tonic::{Code, Request, Response, Status};

use super::generated::publish_service_server::PublishService;
use super::Backend;

/// Where an envelope belongs. MLS is not parsed here: the identifier is the installation key of a welcome, and of any
/// other payload its first 16 or 32 bytes.
///
/// # Errors
/// When there is no payload, or not as many bytes.
pub fn topic_of(envelope: &proto::ClientEnvelope) -> Result<Topic, Reason> {
    let (kind, identifier) = match envelope.payload.as_ref().ok_or(Reason::MalformedPayload)? {
        Payload::GroupMessage(message) => (TopicKind::Group, &message.data),
        Payload::WelcomeMessage(message) => match message.version.as_ref().ok_or(Reason::MalformedPayload)? {
            welcome_message::Version::V1(welcome) => (TopicKind::Welcome, &welcome.installation_key),
            welcome_message::Version::WelcomePointer(pointer) => (TopicKind::Welcome, &pointer.installation_key),
        },
        Payload::KeyPackage(package) => (TopicKind::KeyPackage, &package.key_package_tls_serialized),
        Payload::IdentityUpdate(update) => (TopicKind::Identity, update),
        Payload::CommitLogEntry(entry) => (TopicKind::CommitLog, entry),
    };
    let identifier = identifier.get(..kind.identifier_bytes()).ok_or(Reason::MalformedPayload)?;
    Topic::new(kind, identifier).map_err(|_| Reason::MalformedPayload)
}

#[tonic::async_trait]
impl PublishService for Backend {
    /// All of the request, or none of it.
    async fn publish(
        &self,
        request: Request<proto::PublishRequest>,
    ) -> Result<Response<proto::PublishResponse>, Status> {
        let envelopes = request.into_inner().envelopes;
        let judged: Result<Vec<_>, _> =
            (0u32..).zip(envelopes).map(|(index, envelope)| judge(index, envelope)).collect();
        let published = judged?.into_iter().map(|(topic, envelope)| self.rows.publish(&topic, envelope));
        Ok(Response::new(proto::PublishResponse { envelope_metas: published.collect() }))
    }
}

fn judge(index: u32, envelope: proto::ClientEnvelope) -> Result<(Topic, proto::ClientEnvelope), Status> {
    if envelope.encoded_len() > MAX_ENVELOPE_BYTES {
        return Err(refused(index, Reason::TooLarge));
    }
    topic_of(&envelope).map(|topic| (topic, envelope)).map_err(|reason| refused(index, reason))
}

fn refused(index: u32, reason: Reason) -> Status {
    let message = format!("envelope {index} is refused: {}", reason.as_str_name());
    let error = proto::PublishError { index: Some(index), reason: reason.into(), message: message.clone() };
    let detail = Any { type_url: proto::PublishError::type_url(), value: error.encode_to_vec() };
    let status = RpcStatus { code: Code::InvalidArgument.into(), message: message.clone(), details: vec![detail] };
    Status::with_details(Code::InvalidArgument, message, status.encode_to_vec().into())
}

/// `google.rpc.Status`, which `grpc-status-details-bin` carries.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes, tag = "2")]
    value: Vec<u8>,
}
