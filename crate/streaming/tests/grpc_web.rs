//! A body is read the same however it is cut.

use proptest::prelude::*;
use remuda_streaming::grpc_web::{request_body, GrpcWebBody, CONTENT_TYPE};
use remuda_streaming::{GrpcCode, GrpcStatus, StreamRefused};

type Read = (Vec<Vec<u8>>, Result<GrpcStatus, StreamRefused>);

fn read<'a>(max_message_bytes: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Read {
    let headers = [("Content-Type", CONTENT_TYPE)];
    let mut body = GrpcWebBody::new(200, headers.iter().copied(), max_message_bytes).expect("a gRPC-Web answer");
    let mut messages = Vec::new();
    for chunk in chunks {
        let refused = body.handle_chunk(chunk);
        messages.extend(std::iter::from_fn(|| body.poll_message()).map(|message| message.to_vec()));
        if let Err(refused) = refused {
            return (messages, Err(refused));
        }
    }
    (messages, body.end())
}

fn cut(bytes: &[u8], at: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<_> = at.iter().map(|index| index.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

fn body_bytes() -> impl Strategy<Value = Vec<u8>> {
    let flag = prop_oneof![6 => Just(0u8), 2 => Just(0x80), 1 => any::<u8>()];
    let frame = (flag, proptest::collection::vec(any::<u8>(), 0..40), prop_oneof![9 => Just(0usize), 1 => 1..40usize]);
    proptest::collection::vec(frame, 0..6).prop_map(|frames| {
        let mut bytes = Vec::new();
        for (flag, content, missing) in frames {
            let content = if flag == 0x80 { b"grpc-status: 0\r\n".to_vec() } else { content };
            let mut frame = request_body(&content).expect("short");
            frame[0] = flag;
            frame.truncate(frame.len().saturating_sub(missing));
            bytes.extend(frame);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_a_body_is_cut_says_nothing(bytes in body_bytes(), at in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let whole = read(32, std::iter::once(bytes.as_slice()));
        let cut = cut(&bytes, &at);
        prop_assert_eq!(&read(32, cut.iter().map(Vec::as_slice)), &whole);
        prop_assert_eq!(&read(32, bytes.chunks(1)), &whole);
    }

    #[test]
    fn a_message_that_we_frame_is_read_back(message in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (messages, end) = read(200, std::iter::once(request_body(&message).expect("short").as_slice()));
        prop_assert_eq!(messages, [message]);
        prop_assert_eq!(end, Err(StreamRefused::NoStatus), "a body without a status is never a success");
    }
}

#[test]
fn one_message_above_the_bound_ends_a_body_whose_earlier_messages_stay() {
    let mut bytes = request_body(b"first").expect("short");
    bytes.extend([0x00, 0x00, 0x00, 0x00, 0x21]);
    assert_eq!(
        read(32, std::iter::once(bytes.as_slice())),
        (vec![b"first".to_vec()], Err(StreamRefused::MessageTooLarge))
    );
}

#[test]
fn what_a_broken_body_had_in_its_headers_is_no_status() {
    let headers = [("content-type", CONTENT_TYPE), ("grpc-status", "0")];
    let mut body = GrpcWebBody::new(200, headers.iter().copied(), 32).expect("a gRPC-Web answer");
    body.handle_chunk(&[0x00, 0x00, 0x00, 0x00, 0x05, 1]).expect("the beginning of a frame");
    assert_eq!(body.end(), Err(StreamRefused::NoStatus));
}

#[test]
fn only_what_blames_the_request_is_not_repeated() {
    let repeated = |number: u32| GrpcCode::from_number(number).reopens();
    assert_eq!((0..=17).filter(|number| repeated(*number)).collect::<Vec<_>>(), [0, 1, 2, 4, 8, 10, 13, 14, 17]);
}
