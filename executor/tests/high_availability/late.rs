//! Writes that were given up and go through late: they undo nothing.
//!
//! A connection that is cut keeps what it has not delivered, and delivers it when the wire is mended.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput_executor::etcd::writer::LeaderWriter;
use goodput_executor::etcd::{Change, Etcd, EtcdError};

use super::lease::Host;
use super::started;

/// A wire that can keep what is sent, for later.
#[derive(Clone)]
struct Wire {
    to: String,
    /// Calls that were kept; `None` while the wire is whole.
    kept: Arc<Mutex<Option<Vec<Vec<u8>>>>>,
}

impl Wire {
    /// The wire to `to`, and its address.
    fn new(to: &str) -> (Self, String) {
        let wire = Self { to: to.to_owned(), kept: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = wire.clone();
        std::thread::spawn(move || {
            for asking in listener.incoming().flatten() {
                let wire = serving.clone();
                std::thread::spawn(move || wire.carry(asking));
            }
        });
        (wire, address)
    }

    fn carry(&self, mut asking: TcpStream) {
        let mut answering = TcpStream::connect(&self.to).unwrap();
        let (mut answers, mut back) = (answering.try_clone().unwrap(), asking.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = asking.read(&mut bytes) {
            if self.kept.lock().unwrap().is_none() {
                answering.write_all(&bytes[..count]).unwrap();
                continue;
            }
            let mut call = bytes[..count].to_vec();
            // The rest of the call may come in another part.
            asking.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            while let Ok(count @ 1..) = asking.read(&mut bytes) {
                call.extend_from_slice(&bytes[..count]);
            }
            if let Some(kept) = self.kept.lock().unwrap().as_mut() {
                kept.push(call);
            }
            break;
        }
        let _ = asking.shutdown(Shutdown::Both);
        let _ = answering.shutdown(Shutdown::Both);
    }

    fn cut(&self) {
        *self.kept.lock().unwrap() = Some(Vec::new());
    }

    /// Mends the wire, and returns what it kept.
    fn mend(&self) -> Vec<Vec<u8>> {
        self.kept.lock().unwrap().take().unwrap()
    }

    /// Delivers calls that were kept, and returns the answers.
    fn deliver(&self, calls: &[Vec<u8>]) -> String {
        let deliver = |call: &Vec<u8>| {
            let mut stream = TcpStream::connect(&self.to).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            stream.write_all(call).unwrap();
            let mut answer = Vec::new();
            // The connection stays open, so the time ends the reading.
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        };
        calls.iter().map(deliver).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_comes_late_undoes_no_later_one() {
    let Some((_folder, etcd)) = started() else { return };
    let mut config = etcd.config(None);
    let (wire, address) = Wire::new(config.endpoints[0].strip_prefix("http://").unwrap());
    config.endpoints = vec![format!("http://{address}")];
    config.patience_ms = 3000;
    let store = Etcd::new(&config).unwrap();
    let writer = LeaderWriter::new(store.clone(), "jobs");
    let put = |value: &str| vec![Change::put("jobs/a", value)];
    let early = writer.write(1, put("early")).await.unwrap_err();
    assert!(matches!(early, EtcdError::Deposed { term: 1 }), "no daemon was elected: {early}");
    let term = Host::new("one", &etcd.config(None)).until(true).await.unwrap();
    writer.write(term, put("one")).await.unwrap();
    for settled in [false, true] {
        wire.cut();
        let lost = writer.write(term, put("lost")).await.unwrap_err();
        assert!(matches!(lost, EtcdError::Unreachable { .. }), "{lost}");
        let calls = wire.mend();
        assert!(!calls.is_empty());
        if settled {
            // What is read from here on stays.
            writer.settle(term).await.unwrap();
        } else {
            writer.write(term, put("two")).await.unwrap();
        }
        let answers = wire.deliver(&calls);
        assert!(answers.contains("200 OK") && !answers.contains("succeeded"), "{answers}");
        assert_eq!(store.get("jobs/a").await.unwrap().unwrap().value, b"two");
    }
    // One that was not given up goes through once more, and changes nothing.
    wire.cut();
    writer.write(term, put("three")).await.unwrap_err();
    let calls = wire.mend();
    assert!(wire.deliver(&calls[..1]).contains("succeeded"), "it went through late");
    writer.write(term, put("four")).await.unwrap();
    assert_eq!(store.get("jobs/a").await.unwrap().unwrap().value, b"four");
}
