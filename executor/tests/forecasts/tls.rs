//! Both interfaces with certificates on both sides.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use goodput_configs::forecast::ForecastTls;
use goodput_configs::live::name::JobName;
use goodput_executor::agent::tls::{Authority, DAEMON, INTERFACE};
use goodput_executor::http::identity::{GRPC, authorities, certificates, private_key, provider};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use super::double::Double;
use super::grpc::{exchange, scaled_object};
use super::{Running, config, wave};

/// Name in the certificate of the client.
const CLIENT: &str = "keda";

/// Connection of a client that trusts the authority in `folder`, and shows its certificate or none.
async fn connect(address: SocketAddr, folder: &Path, shows: bool) -> std::io::Result<TlsStream<TcpStream>> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(authorities(&folder.join("ca.pem")).unwrap());
    let file = |end: &str| folder.join(format!("{CLIENT}.{end}"));
    let mut config = match shows {
        true => builder
            .with_client_auth_cert(certificates(&file("pem")).unwrap(), private_key(&file("key")).unwrap())
            .unwrap(),
        false => builder.with_no_client_auth(),
    };
    config.alpn_protocols = GRPC.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::from(address.ip()), stream).await
}

/// Answer of `GET /healthz` over HTTPS.
fn health(address: SocketAddr, folder: &Path, shows: bool) -> Result<String, String> {
    let read = |name: String| std::fs::read(folder.join(name)).unwrap();
    let parts = |name: &str| Certificate::from_pem(&read(format!("{name}.pem"))).unwrap();
    let shown = shows.then(|| {
        let key = PrivateKey::from_pem(&read(format!("{CLIENT}.key"))).unwrap();
        ClientCert::new_with_certs(&[parts(CLIENT)], key)
    });
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[parts("ca")])).client_cert(shown);
    let tls = tls.unversioned_rustls_crypto_provider(provider()).build();
    let agent = ureq::Agent::config_builder().tls_config(tls).build().new_agent();
    let mut answer = agent.get(format!("https://{address}/healthz")).call().map_err(|error| error.to_string())?;
    answer.body_mut().read_to_string().map_err(|error| error.to_string())
}

#[test]
fn callers_with_a_certificate_are_answered_on_both_interfaces_and_others_are_not() {
    let (prometheus, folder) = (Double::start(|_| Some(wave(5))), tempfile::tempdir().unwrap());
    let certs = folder.path().join("certs");
    let authority = Authority::open(&certs).unwrap();
    authority.of_interface(&["127.0.0.1".to_owned()], 1).unwrap();
    authority.of_clients(&[JobName::new(CLIENT).unwrap()], 1).unwrap();
    let error = authority.of_clients(&[JobName::new(DAEMON).unwrap()], 1).unwrap_err().to_string();
    assert!(error.contains("choose another name"), "{error}");
    let mut config = config(&prometheus.url, "load", folder.path());
    let file = |name: String| certs.join(name);
    let tls = ForecastTls {
        certificate: file(format!("{INTERFACE}.pem")),
        key: file(format!("{INTERFACE}.key")),
        clients: Some(file("ca.pem".into())),
    };
    config.dynamo = None;
    config.tls = Some(ForecastTls { key: file("none.key".into()), ..tls.clone() });
    let error = Running::start(&config).err().unwrap().to_string();
    assert!(error.starts_with("[tls] ") && error.contains("none.key"), "{error}");
    config.tls = Some(tls.clone());
    let server = Running::start(&config).unwrap();

    assert!(health(server.http, &certs, true).unwrap().contains("\"services\""));
    assert!(health(server.http, &certs, false).is_err(), "a caller without a certificate is answered");
    let (address, message) = (server.grpc, scaled_object("service", "chat"));
    let path = "/externalscaler.ExternalScaler/IsActive";
    server.runtime.block_on(async {
        let stream = connect(address, &certs, true).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(GRPC[0]), "clients of gRPC insist on the protocol");
        let (answer, status, _) = exchange(stream, &format!("https://{address}{path}"), &message).await;
        assert_eq!((answer, status.as_str()), (vec![1 << 3, 1], "0"));
        // Under TLS 1.3 the handshake of the client is over before the server refuses it.
        if let Ok(mut stream) = connect(address, &certs, false).await {
            let mut bytes = [0; 1];
            let told = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes).await;
            assert!(told.is_err() || told.is_ok_and(|read| read == 0), "a caller without a certificate is answered");
        }
    });
    server.stop();

    // Where no authority of callers is named, the connection is encrypted and every caller is answered.
    config.tls = Some(ForecastTls { clients: None, ..tls.clone() });
    let server = Running::start(&config).unwrap();
    assert!(health(server.http, &certs, false).is_ok());
    server.stop();

    let strange = folder.path().join("strange");
    Authority::open(&strange).unwrap();
    config.tls = Some(ForecastTls { clients: Some(strange.join("ca.pem")), ..tls });
    let server = Running::start(&config).unwrap();
    assert!(health(server.http, &certs, true).is_err(), "a certificate of another authority is taken");
    server.stop();
}
