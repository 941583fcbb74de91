//! TLS and tokens over real sockets.

use crate::support::{channel, request, same, soon};
use cbench_client::pb::system_client::SystemClient;
use cbench_client::{Assessment, Bench, Error, Offers, Server, ServerTls, Tls, evaluator};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::{Code, Request};

/// An authority, and certificates signed by it.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

fn offers() -> Offers {
    Offers::new().evaluator(evaluator("one", |_, _, _| Assessment::from([("one", 1.0)])))
}

async fn score(address: &str, tls: Tls, token: Option<&str>) -> cbench_client::Result<Assessment> {
    let builder = Bench::builder(address).tls(tls);
    let builder = match token {
        Some(token) => builder.token(token),
        None => builder,
    };
    let bench = builder.connect().await?;
    soon(bench.score("one", Default::default(), Default::default(), Default::default())).await
}

fn assert_refused(error: &Error) {
    let Error::Refused { code, reason, .. } = error else { panic!("{error:#?}") };
    assert_eq!((*code, reason.as_str()), (Code::Unauthenticated, "UNAUTHENTICATED"));
}

#[tokio::test]
async fn tls_and_token_let_in_who_has_both() {
    let authority = Authority::new();
    let (cert, key) = authority.sign();
    let server = Server::new(offers()).address("localhost:0").token("secret");
    let server = server.tls(ServerTls::from_pem(cert, key)).start().await.unwrap();
    let trusting = || Tls::new().ca_pem(authority.pem());
    let scored = score(server.address(), trusting(), Some("secret")).await.unwrap();
    assert_eq!(scored.scores["one"], 1.0);
    let error = score(server.address(), trusting(), Some("wrong")).await.unwrap_err();
    assert_refused(&error);
    assert!(error.to_string().contains("refused the token"), "{error}");
    let error = score(server.address(), trusting(), None).await.unwrap_err();
    assert_refused(&error);
    assert!(error.to_string().contains("wants a token"), "{error}");
    let stranger = Tls::new().ca_pem(Authority::new().pem());
    let error = score(server.address(), stranger, Some("secret")).await.unwrap_err();
    assert!(error.to_string().contains("is not accepted"), "{error}");
}

#[tokio::test]
async fn a_server_may_demand_certificates() {
    let authority = Authority::new();
    let (cert, key) = authority.sign();
    let tls = ServerTls::from_pem(cert, key).client_ca_pem(authority.pem());
    let server = Server::new(offers()).address("localhost:0").tls(tls).start().await.unwrap();
    let trusting = || Tls::new().ca_pem(authority.pem());
    let (cert, key) = authority.sign();
    score(server.address(), trusting().identity_pem(cert, key), None).await.unwrap();
    assert!(score(server.address(), trusting(), None).await.is_err());
    let (cert, key) = Authority::new().sign();
    assert!(score(server.address(), trusting().identity_pem(cert, key), None).await.is_err());
}

#[tokio::test]
async fn without_the_token_only_health_is_answered() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

    let server = Server::new(same("s")).token("secret").start().await.unwrap();
    let channel = channel(&server).await;
    let mut client = SystemClient::new(channel.clone());
    let status = soon(client.process(request("", ""))).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    let mut request = Request::new(request("", ""));
    request.metadata_mut().insert("authorization", "Bearer secret".parse().unwrap());
    soon(client.process(request)).await.unwrap();
    soon(HealthClient::new(channel).check(HealthCheckRequest::default())).await.unwrap();
}

#[tokio::test]
async fn a_certificate_that_is_none_is_refused_before_serving() {
    let server = Server::new(same("s")).tls(ServerTls::from_pem("no", "pem"));
    let error = server.start().await.err().unwrap();
    assert!(error.to_string().starts_with("the certificate or key cannot be used"), "{error}");
    let error = ServerTls::from_files("missing.pem", "missing.pem").err().unwrap();
    assert!(error.to_string().starts_with("cannot read missing.pem"), "{error}");
}
