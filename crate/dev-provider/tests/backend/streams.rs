//! Static streams of an honest backend.

use std::time::Duration;

use remuda_dev_provider::backend::settings::BackendSettings;
use remuda_streaming::static_stream::StaticEvent;
use remuda_streaming::GrpcCode;
use tokio::time::Instant;

use crate::reader::{group, serve, Read};

#[tokio::test(start_paused = true)]
async fn started_comes_first_with_fixed_targets_then_history_then_news() {
    let served = serve(BackendSettings { keepalive_ms: 1_000, ..Default::default() });
    let old = served.publish(1, 40);
    let mut subscription = served.subscribe(&[(group(2), 0), (group(1), old[9])]).await.expect("a stream");
    let Read::Event(StaticEvent::Started(started)) = subscription.next().await.expect("honest") else { panic!() };
    assert_eq!(started.keepalive_interval_ms, 1_000);
    let targets: Vec<_> = started.targets.iter().map(|(topic, target)| (*topic, target.through().get())).collect();
    assert_eq!(targets, [(group(2), 0), (group(1), old[39])]);
    let history = subscription.rows(30).await;
    assert_eq!(history, old[10..].iter().map(|place| (group(1), *place)).collect::<Vec<_>>());
    let new = [served.publish(2, 1), served.publish(1, 1), served.publish(3, 1)].concat();
    assert_eq!(subscription.rows(2).await, [(group(2), new[0]), (group(1), new[1])], "and nothing of a third group");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_keeps_alive_and_data_counts_as_life() {
    let served = serve(BackendSettings { keepalive_ms: 1_000, ..Default::default() });
    let mut subscription = served.subscribe(&[(group(1), 0)]).await.expect("a stream");
    assert!(matches!(subscription.next().await, Ok(Read::Event(StaticEvent::Started(_)))));
    let began = Instant::now();
    for second in 1..=3 {
        assert!(matches!(subscription.next().await, Ok(Read::Event(StaticEvent::Keepalive))));
        assert_eq!(began.elapsed().as_secs(), second);
    }
    tokio::time::sleep(Duration::from_millis(600)).await;
    served.publish(1, 1);
    subscription.rows(1).await;
    assert!(matches!(subscription.next().await, Ok(Read::Event(StaticEvent::Keepalive))));
    assert_eq!(began.elapsed().as_millis(), 4_600, "an interval after the row");
}

#[tokio::test(start_paused = true)]
async fn a_row_comes_when_the_replica_has_it() {
    let served = serve(BackendSettings { replica_lag_ms: 700, keepalive_ms: 60_000, ..Default::default() });
    let old = served.publish(1, 1);
    let mut subscription = served.subscribe(&[(group(1), 0)]).await.expect("a stream");
    let Read::Event(StaticEvent::Started(started)) = subscription.next().await.expect("honest") else { panic!() };
    assert_eq!(started.targets[0].1.through().get(), 0, "the head as the serving database sees it");
    let began = Instant::now();
    assert_eq!(subscription.rows(1).await, [(group(1), old[0])]);
    assert_eq!(began.elapsed().as_millis(), 700);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_topics_are_one_stream() {
    let served = serve(BackendSettings::default());
    let topic = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let identifier = [[high, low]; 8].concat();
        remuda_streaming::Topic::new(remuda_streaming::TopicKind::Group, &identifier).expect("a group")
    };
    let topics: Vec<_> = (0..10_000).map(|number| (topic(number), 0)).collect();
    let mut subscription = served.subscribe(&topics).await.expect("a stream");
    let Read::Event(StaticEvent::Started(started)) = subscription.next().await.expect("honest") else { panic!() };
    assert_eq!(started.targets.len(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_stops_says_so() {
    let served = serve(BackendSettings::default());
    let mut subscription = served.subscribe(&[(group(1), 0)]).await.expect("a stream");
    assert!(matches!(subscription.next().await, Ok(Read::Event(StaticEvent::Started(_)))));
    served.stop.send_replace(true);
    let Read::Ended(status) = subscription.next().await.expect("a status") else { panic!() };
    assert_eq!(status.code(), GrpcCode::Unavailable);
}
