//! `endpoint`.

use remuda_verify::endpoint;
use remuda_wire::chain::EndpointTransport;
use remuda_wire::DecodeError;
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// One endpoint, or a list of them under its bound.
pub fn endpoint(input: &Input<'_>) -> Answer {
    let list = input.at("endpoints");
    let admitted = if list.is_null() {
        let uri = text(input.at("uri"))?;
        endpoint::admit(transport(input.at("transport"))?, &uri)
    } else {
        let endpoints: Result<Vec<_>, Refused> = list.list()?.map(pair).collect();
        let endpoints = endpoints?;
        let borrowed = endpoints.iter().map(|(transport, uri)| (*transport, uri.as_str()));
        endpoint::admit_list(borrowed, input.at("max_provider_endpoints").number()?)
    };
    admitted?;
    Ok(json!({}))
}

fn pair(input: Input<'_>) -> Result<(EndpointTransport, String), Refused> {
    match input.list()?.collect::<Vec<_>>().as_slice() {
        [name, uri] => Ok((transport(*name)?, text(*uri)?)),
        _ => Err(Refused::Malformed("an endpoint is a pair".into())),
    }
}

fn transport(input: Input<'_>) -> Result<EndpointTransport, Refused> {
    let name = input.text()?;
    let known = EndpointTransport::ALL.iter().find(|transport| transport.name() == name);
    known.copied().ok_or_else(|| Refused::Malformed(format!("unknown transport {name}")))
}

/// A URI, written as text or as bytes.
fn text(input: Input<'_>) -> Result<String, Refused> {
    match input.json().as_str() {
        Some(text) => Ok(text.to_owned()),
        None => String::from_utf8(input.at("bytes").bytes()?).map_err(|_| DecodeError::InvalidUtf8.into()),
    }
}
