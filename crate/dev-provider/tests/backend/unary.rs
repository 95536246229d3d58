//! Publish, Query, QueryNewest and CORS.

use axum::body::Body;
use axum::http::{Method, Request};
use remuda_dev_provider::backend::settings::BackendSettings;
use remuda_streaming::proto::client_envelope::Payload;
use remuda_streaming::proto::{self, ClientEnvelope, GroupMessage, PublishRequest, PublishResponse};
use remuda_streaming::query::{NewestQuery, OrderedQuery};
use remuda_streaming::{Bytes, GrpcCode, Topic};
use std::time::Duration;

use crate::reader::{group, message, serve, Served};

use prost::Message;

async fn publish(served: &Served, envelopes: Vec<ClientEnvelope>) -> Result<Vec<u64>, GrpcCode> {
    let request = PublishRequest { envelopes }.encode_to_vec();
    let (message, status) = served.call("PublishService/Publish", &request).await;
    match message {
        Some(message) => {
            let metas = PublishResponse::decode(message).expect("protobuf").envelope_metas;
            Ok(metas.iter().map(|meta| meta.cursor.expect("a place").sequence_id).collect())
        }
        None => Err(status.code()),
    }
}

async fn page(served: &Served, topics: &[(Topic, u64)], limit: u32) -> (Vec<(Topic, Vec<u64>)>, bool) {
    let query = OrderedQuery::new(topics, limit).expect("a query");
    let (message, _) = served.call("QueryService/Query", &query.to_bytes()).await;
    let page = query.answer(message.expect("an answer")).expect("honest");
    let places = |prefix: &remuda_streaming::OrderedPrefix| {
        (prefix.topic(), prefix.rows().iter().map(|row| row.sequence_id().get()).collect())
    };
    (page.prefixes.iter().map(places).collect(), page.has_more)
}

#[tokio::test(start_paused = true)]
async fn what_is_published_is_queried_in_pages_with_gaps_between() {
    let served = serve(BackendSettings { sequence_gap: 5, ..Default::default() });
    let envelopes = (0..7).map(|index| message(1, &format!("{index}"))).collect();
    let places = publish(&served, envelopes).await.expect("published");
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(places.windows(2).any(|pair| pair[1] - pair[0] > 1), "no gap in {places:?}");
    assert_eq!(page(&served, &[(group(1), 0)], 4).await, (vec![(group(1), places[..4].to_vec())], true));
    assert_eq!(page(&served, &[(group(1), places[3])], 4).await, (vec![(group(1), places[4..].to_vec())], false));
    assert_eq!(page(&served, &[(group(1), places[6]), (group(2), 0)], 4).await, (vec![], false));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_lags_shows_neither_row_nor_head_before_its_time() {
    let served = serve(BackendSettings { replica_lag_ms: 500, ..Default::default() });
    let place = publish(&served, vec![message(1, "late")]).await.expect("published")[0];
    let newest = async || {
        let query = NewestQuery::new(&[group(1)]).expect("a query");
        let (message, _) = served.call("QueryService/QueryNewest", &query.to_bytes()).await;
        query.answer(message.expect("an answer")).expect("honest")[0].1.through().get()
    };
    assert_eq!(newest().await, 0);
    assert_eq!(page(&served, &[(group(1), 0)], 10).await, (vec![], false));
    tokio::time::advance(Duration::from_millis(500)).await;
    assert_eq!(newest().await, place);
    assert_eq!(page(&served, &[(group(1), 0)], 10).await, (vec![(group(1), vec![place])], false));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_wrong_publishes_nothing_and_is_told_why() {
    let served = serve(BackendSettings::default());
    let large = GroupMessage { data: Bytes::from(vec![1; 1024 * 1024]), ..Default::default() };
    let large = ClientEnvelope { payload: Some(Payload::GroupMessage(large)) };
    for bad in [ClientEnvelope { payload: None }, large] {
        let refused = publish(&served, vec![message(1, "good"), bad]).await;
        assert_eq!(refused, Err(GrpcCode::InvalidArgument));
    }
    assert_eq!(page(&served, &[(group(1), 0)], 10).await, (vec![], false), "the good one beside it neither");
    let twice = proto::QueryRequest {
        queries: vec![
            proto::TopicQuery {
                topic: Some(proto::Topic { topic: Bytes::from_static(&[0; 17]) }),
                cursor: None
            };
            2
        ],
        limit: 1,
    };
    for (path, request) in [
        ("QueryService/Query", twice.encode_to_vec()),
        ("QueryService/Query", proto::QueryRequest::default().encode_to_vec()),
        ("SubscriptionService/SubscribeStatic", vec![]),
    ] {
        let (message, status) = served.call(path, &request).await;
        assert_eq!((message, status.code()), (None, GrpcCode::InvalidArgument), "{path}");
    }
}

#[tokio::test]
async fn a_page_may_send_what_a_client_sends_and_read_how_it_ended() {
    let served = serve(BackendSettings::default());
    let preflight = |origin: &str| {
        let request = Request::builder()
            .method(Method::OPTIONS)
            .uri("/xmtp.backend.v1.QueryService/Query")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type,x-app-version,x-grpc-web");
        request.body(Body::empty()).expect("a request")
    };
    let allowed = served.send(preflight("http://localhost:5173")).await;
    assert_eq!(allowed.headers()["access-control-allow-origin"], "http://localhost:5173");
    let headers = allowed.headers()["access-control-allow-headers"].to_str().expect("text");
    for name in ["authorization", "content-type", "x-app-version", "x-grpc-web"] {
        assert!(headers.split(',').any(|allowed| allowed == name), "{name} is not in {headers}");
    }
    let elsewhere = served.send(preflight("https://example.org")).await;
    assert_eq!(elsewhere.headers().get("access-control-allow-origin"), None);
    let answer = served.post("QueryService/Query", &[]).await;
    let exposed = answer.headers()["access-control-expose-headers"].to_str().expect("text");
    for name in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
        assert!(exposed.split(',').any(|header| header == name), "{name} is not in {exposed}");
    }
}
