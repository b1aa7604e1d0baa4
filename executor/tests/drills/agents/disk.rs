//! Drill 19: the disk of one node is full. The node runs in a mount namespace, its folder on a small disk of memory.

use super::*;
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use goodput_executor::engine::NodeHealth;
use goodput_testkit::not_tested;

/// An agent with its folder on a disk of its own.
struct SmallDisk {
    agent: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl SmallDisk {
    /// Starts the agent; `None` where the system lets no program make a mount namespace.
    fn spawn(node: &Node) -> Option<Self> {
        let state = &node.config.state_dir;
        fs::create_dir_all(state).unwrap();
        let config = node.folder.path().join("agent.toml");
        fs::write(&config, reader::resolved(&node.config).unwrap()).unwrap();
        // The stand-in for the driver and its copy are on it too.
        let script = format!("mount -t tmpfs -o size=64m tmpfs {state:?} && exec {NODE_PROGRAM:?} agent {config:?}",);
        let mut command = Command::new("unshare");
        // The superuser needs no namespace of users for it.
        let user = if rustix::process::geteuid().is_root() { None } else { Some("--map-root-user") };
        command.arg("--mount").args(user).args(["sh", "-c", &script]).stdin(Stdio::null());
        let mut agent = command.spawn().ok()?;
        let folder = PathBuf::from(format!("/proc/{}/root", agent.id())).join(state.strip_prefix("/").unwrap());
        let began = Instant::now();
        let address = loop {
            if let Ok(text) = fs::read(folder.join("serving.json")) {
                let serving: serde_json::Value = serde_json::from_slice(&text).unwrap();
                break serving["address"].as_str().unwrap().parse().unwrap();
            }
            if agent.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(began.elapsed() < PATIENCE, "the agent does not serve");
            std::thread::sleep(Duration::from_millis(20));
        };
        Some(Self { agent, address, folder })
    }

    /// Fills the disk to its last byte.
    fn fill(&self) {
        let mut file = File::create(self.folder.join("filler")).unwrap();
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.folder.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

async fn full_disk(fencing: Fencing) {
    let site = Site::new(&["n0", "n1"], fencing);
    let Some(small) = SmallDisk::spawn(&site.nodes[0]) else {
        not_tested("unshare cannot make a mount namespace here");
        return;
    };
    let other = site.nodes[1].agent().await;
    let mut daemon = open(site.settings(&[small.address, other.address], "a", "")).unwrap();
    all_up(&mut daemon).await;
    small.fill();
    // They are placed before it is known, two of them on the full disk.
    let mut keys = Vec::new();
    for index in 0..20 {
        keys.push(daemon.submit("drill", &job(&format!("j{index}"), 0.2)).await.unwrap());
    }
    let began = Instant::now();
    let status = until(&mut daemon, "unfit", |status| status.nodes[0].health == NodeHealth::Drained).await;
    assert!(status.nodes[0].note.contains("takes no writes"), "{}", status.nodes[0].note);
    let status = all_over(&mut daemon).await;
    println!("all 20 ended {:.1} s after the disk was full", began.elapsed().as_secs_f64());
    let told = alerts(&status, "unfit");
    assert!(told.iter().any(|text| text.contains("takes no writes")) && told.len() <= 2, "{:?}", status.alerts);
    assert!(status.nodes[0].health == NodeHealth::Drained, "the disk is still full");
    assert_eq!(site.doubled_and_lost(&keys), (0, 0));

    small.make_room();
    until(&mut daemon, "fit again", |status| status.nodes[0].health == NodeHealth::Up).await;
    let both = [
        daemon.submit("drill", &sized("k0", 2, 0.2)).await.unwrap(),
        daemon.submit("drill", &sized("k1", 2, 0.2)).await.unwrap(),
    ];
    all_over(&mut daemon).await;
    assert_eq!(site.doubled_and_lost(&both), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_full_disk_is_given_no_jobs_and_those_it_was_given_go_elsewhere() {
    full_disk(Fencing::Keep).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_full_disk_whose_jobs_die_with_the_lease_is_given_none_either() {
    full_disk(Fencing::Kill { after_ms: 2000 }).await;
}
