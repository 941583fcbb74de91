//! What the tests share: servers on free ports, requests, and waits with an end.

pub mod daemon;

use std::time::Duration;

use cbench_client::pb::system_client::SystemClient;
use cbench_client::pb::{self, value::Kind};
use cbench_client::{Example, Info, Offers, RunningServer, Server, System, system};
use tonic::transport::Channel;

const LIMIT: Duration = Duration::from_secs(20);

/// Waits for something that has to happen.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("it takes too long")
}

pub async fn started(offers: impl Into<Offers>) -> RunningServer {
    Server::new(offers).start().await.expect("it starts")
}

pub async fn channel(server: &RunningServer) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{}", server.address())).expect("valid");
    endpoint.connect().await.expect("it listens")
}

pub async fn client(server: &RunningServer) -> SystemClient<Channel> {
    SystemClient::new(channel(server).await)
}

/// A system that changes nothing.
pub fn same(name: &str) -> impl System {
    system(Info::new(name).version("1"), |example: Example, _call| example)
}

pub fn text(value: &str) -> pb::Value {
    pb::Value { kind: Some(Kind::StringValue(value.into())) }
}

pub fn request(system: &str, call_id: &str) -> pb::ProcessRequest {
    let fields = [("context".to_string(), text("A. B."))].into();
    pb::ProcessRequest {
        system: system.into(),
        call_id: call_id.into(),
        example: Some(pb::Example { fields, ..Default::default() }),
        ..Default::default()
    }
}

pub fn call(system: &str, call_id: &str) -> pb::ProcessCall {
    pb::ProcessCall { request: Some(request(system, call_id)), ..Default::default() }
}

/// Reads the failure that a status carries.
pub fn failure_of(status: &tonic::Status) -> pb::Failure {
    use prost::Message;
    let told = status.metadata().get_bin("cbench-failure-bin").expect("there is a failure");
    pb::Failure::decode(told.to_bytes().expect("it is base64")).expect("it is a failure")
}
