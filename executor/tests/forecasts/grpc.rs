//! The gRPC interface by bytes that are written here from the published protocols, over a plain connection of HTTP/2.

use goodput_executor::forecasts::ForecastServer;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::double::Double;
use super::{PER_REPLICA, Running, config, wave};

/// Field of a message with a length before its bytes.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// Field with a number of 64 bits.
fn double(tag: u8, number: f64) -> Vec<u8> {
    [&[tag << 3 | 1][..], &number.to_le_bytes()].concat()
}

/// Reference to a ScaledObject with one pair of metadata.
pub fn scaled_object(key: &str, value: &str) -> Vec<u8> {
    let pair = [field(1, key.as_bytes()), field(2, value.as_bytes())].concat();
    [field(1, b"chat-scaler"), field(2, b"default"), field(3, &pair)].concat()
}

/// Message and status of an answer.
pub type Answer = (Vec<u8>, String, String);

fn call(server: &Running, path: &str, message: &[u8]) -> Answer {
    server.runtime.block_on(async {
        let stream = TcpStream::connect(server.grpc).await.unwrap();
        exchange(stream, &format!("http://{}{path}", server.grpc), message).await
    })
}

/// Call over a connection that is open.
pub async fn exchange<S>(stream: S, url: &str, message: &[u8]) -> Answer
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = [&[0][..], &length, message].concat();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(url)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let headers = answer.headers().clone();
    let collected = answer.into_body().collect().await.unwrap();
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let word = |name: &str| {
        let value = trailers.get(name).or_else(|| headers.get(name));
        value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    };
    let message = collected.to_bytes().get(5..).unwrap_or_default().to_vec();
    (message, word("grpc-status"), word("grpc-message"))
}

fn keda(server: &Running, name: &str, message: &[u8]) -> (Vec<u8>, String, String) {
    call(server, &format!("/externalscaler.ExternalScaler/{name}"), message)
}

#[test]
fn keda_and_dynamo_are_answered_in_their_protocols() {
    let (prometheus, folder) = (Double::start(|_| Some(wave(5))), tempfile::tempdir().unwrap());
    let server = Running::start(&config(&prometheus.url, "load", folder.path())).unwrap();
    // A steady load of 140 is known without an error.
    let chat = server.stands("fresh");
    let room = chat["room"].as_f64().unwrap();
    assert!((room - 140.0).abs() < 1.0, "{chat}");

    let object = scaled_object("service", "chat");
    assert_eq!(keda(&server, "IsActive", &object).0, [1 << 3, 1]);
    let (spec, status, _) = keda(&server, "GetMetricSpec", &object);
    let expected = [field(1, b"goodput-chat-replicas"), vec![2 << 3, 1], double(3, 1.0)].concat();
    assert_eq!((spec, status.as_str()), (field(1, &expected), "0"));
    let request = [field(1, &object), field(2, b"goodput-chat-replicas")].concat();
    let (values, status, _) = keda(&server, "GetMetrics", &request);
    let replicas = server.replicas();
    assert_eq!(replicas as f64, (room / PER_REPLICA).ceil());
    let expected =
        [field(1, b"goodput-chat-replicas"), vec![2 << 3, replicas as u8], double(3, replicas as f64)].concat();
    assert_eq!((values, status.as_str()), (field(1, &expected), "0"));

    let (_, status, message) = keda(&server, "GetMetrics", &field(1, &scaled_object("service", "chta")));
    assert!(status == "5" && message.contains("chat"), "{status} {message}");
    let (_, status, message) = keda(&server, "IsActive", &scaled_object("name", "chat"));
    assert!(status == "3" && message.contains("service"), "{status} {message}");
    let (_, status, _) = keda(&server, "StreamMetricSpec", &object);
    assert_eq!(status, "12", "the call is optional, and KEDA asks at intervals where it is not served");

    // Dynamo sends the traffic of a window of 60 s.
    let predict = "/dynamo.planner.plugin.v1.PredictPlugin/Predict";
    let observations = field(3, &field(1, &[double(1, 60.0), double(2, 8400.0)].concat()));
    let (answer, status, _) = call(&server, predict, &field(1, &observations));
    assert_eq!((status.as_str(), &answer[..3]), ("0", &[1 << 3 | 2, 18, 1 << 3 | 1][..]));
    let requests = f64::from_le_bytes(answer[3..11].try_into().unwrap());
    assert!((requests - 60.0 * room).abs() < 1.0, "{requests} requests in a window");
    assert_eq!(answer[11..20], field(4, b"goodput"));
    let (answer, status, _) = call(&server, predict, &[]);
    assert_eq!((answer[0], status.as_str()), (2 << 3 | 2, "0"), "no prediction, and a reason");
    server.stop();
}

#[test]
fn before_the_first_value_there_is_no_metric_and_no_prediction() {
    let (prometheus, folder) = (Double::start(|_| None), tempfile::tempdir().unwrap());
    let server = Running::start(&config(&prometheus.url, "load", folder.path())).unwrap();
    let object = scaled_object("service", "chat");
    let (_, status, message) = keda(&server, "GetMetrics", &field(1, &object));
    assert!(status == "14" && message.contains("no%20value%20yet"), "{status} {message}");
    assert_eq!(keda(&server, "IsActive", &object).0, [1 << 3, 1], "what is not known takes no replica away");
    server.stop();
}

#[test]
fn the_grpc_interface_can_be_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config("http://127.0.0.1:1", "load", folder.path());
    config.grpc = String::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(runtime.block_on(ForecastServer::open(&config)).unwrap().grpc.is_none());
}
