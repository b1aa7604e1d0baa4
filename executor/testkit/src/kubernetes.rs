//! A Kubernetes control plane of one's own: etcd, the API server, the job controller and
//! kube-scheduler, on free ports of this machine. Kubelets are played ([`kubelet`](crate::kubelet)).
//!
//! The programs of Kubernetes are one binary that `cargo xtask test` builds from Go modules, in
//! `testkit/kubernetes`. All are children in the foreground, and each is ended by its id.

use std::fs;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use goodput_configs::live::engine::KubernetesConfig;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use crate::etcd::PrivateEtcd;
use crate::slurm::{find, free_ports};

/// Token of the administrator.
const ADMIN: &str = "admin-of-tests";
/// Controllers that tests need.
const CONTROLLERS: &str = "job-controller,resourceclaim-controller,ttl-after-finished-controller,garbage-collector-controller,namespace-controller,serviceaccount-controller,disruption-controller";

/// Release of Kubernetes in `testkit/kubernetes/go.mod`.
const RELEASE: &str = "1.36.3";
/// Bytes of the end of a log that an error shows.
const TAIL: i64 = 2000;

/// The binary, where it has been built.
pub fn binary() -> Option<PathBuf> {
    cached(&format!("kubernetes-{RELEASE}"))
}

/// A file or folder that `cargo xtask test` puts into the cache of the machine, or into the folder `target` where the
/// cache may not be written.
pub(crate) fn cached(name: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kubernetes");
    let folders = [PathBuf::from("/var/cache/goodput-testkit"), target];
    folders.map(|folder| folder.join(name)).into_iter().find(|file| file.exists())
}

/// Reason why tests cannot start a control plane here.
pub fn missing() -> Option<&'static str> {
    match () {
        () if find("etcd").is_none() => Some("etcd is not installed; apt-get install etcd-server"),
        () if binary().is_none() => {
            Some("the control plane of Kubernetes is not built; `cargo xtask test` builds it with Go")
        }
        () => None,
    }
}

/// A running control plane; dropping it ends it.
#[derive(Debug)]
pub struct ControlPlane {
    directory: PathBuf,
    etcd: PrivateEtcd,
    ports: [u16; 3],
    api_server: Option<Child>,
    others: Vec<Option<Child>>,
}

impl ControlPlane {
    /// Starts a control plane with all files in `directory`, and waits until it is ready.
    ///
    /// # Errors
    /// Where a program is missing or does not start.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let problem = |error: rcgen::Error| io::Error::other(error.to_string());
        let ports = free_ports(3)?;
        certify(directory).map_err(problem)??;
        fs::write(directory.join("tokens.csv"), format!("{ADMIN},admin,1,\"system:masters\"\n"))?;
        let etcd = PrivateEtcd::start(directory, None)?;
        if !etcd.wait(Duration::from_secs(60)) {
            return Err(io::Error::other("etcd takes no connections"));
        }
        let ports = [ports[0], ports[1], ports[2]];
        let mut plane = Self { directory: directory.into(), etcd, ports, api_server: None, others: vec![None, None] };
        fs::write(plane.kubeconfig(), plane.kubeconfig_text(ADMIN))?;
        plane.start_api_server()?;
        plane.wait_until_ready()?;
        plane.start_controllers()?;
        plane.start_scheduler()?;
        Ok(plane)
    }

    /// File by which the administrator reaches it.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Text of a file by which the holder of `token` reaches it.
    pub fn kubeconfig_text(&self, token: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters: [{{name: test, cluster: {{server: \"https://127.0.0.1:{}\", certificate-authority: \"{}\"}}}}]\n\
             users: [{{name: test, user: {{token: \"{token}\"}}}}]\n\
             contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n",
            self.ports[0],
            self.directory.join("ca.pem").display()
        )
    }

    /// Settings by which an engine reaches it.
    pub fn settings(&self) -> KubernetesConfig {
        let image = Some("job:test".to_owned());
        KubernetesConfig { kubeconfig: Some(self.kubeconfig()), image, ..KubernetesConfig::default() }
    }

    /// A client for the holder of the file at `path`.
    ///
    /// # Errors
    /// Where the file is no kubeconfig.
    pub async fn client(path: &Path) -> io::Result<Client> {
        let file = Kubeconfig::read_from(path).map_err(io::Error::other)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(io::Error::other)?;
        config.read_timeout = Some(Duration::from_secs(40));
        Client::try_from(config).map_err(io::Error::other)
    }

    /// A `kubectl` of the administrator, of the release of the control plane.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(binary().unwrap_or_default());
        command.arg("kubectl").arg("--kubeconfig").arg(self.kubeconfig());
        command
    }

    /// Applies the definitions of objects in the folder `definitions`, and waits until they are served.
    ///
    /// # Errors
    /// Where the API server refuses one.
    pub fn define(&self, definitions: &Path) -> io::Result<()> {
        let run = |words: &[&str]| {
            let output = self.kubectl().args(words).arg("-f").arg(definitions).output()?;
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(io::Error::other(text)) }
        };
        // They are too large for the annotation of a plain apply.
        run(&["apply", "--server-side"])?;
        run(&["wait", "--for=condition=Established", "--timeout=60s"])
    }

    /// Starts the API server, again where it was killed.
    ///
    /// # Errors
    /// Where the program cannot be started.
    pub fn start_api_server(&mut self) -> io::Result<()> {
        let at = |file: &str| self.directory.join(file).display().to_string();
        let etcd = self.etcd_url();
        self.api_server = Some(self.child(
            "kube-apiserver",
            &[
                ("etcd-servers", etcd),
                ("secure-port", self.ports[0].to_string()),
                ("bind-address", "127.0.0.1".into()),
                // Nothing is sent there: it would be written into the endpoints of a service.
                ("advertise-address", "192.0.2.1".into()),
                ("endpoint-reconciler-type", "none".into()),
                ("service-cluster-ip-range", "10.0.0.0/24".into()),
                ("cert-dir", at("certs")),
                ("tls-cert-file", at("server.pem")),
                ("tls-private-key-file", at("server.key")),
                ("token-auth-file", at("tokens.csv")),
                ("authorization-mode", "RBAC".into()),
                ("service-account-issuer", "https://goodput.test".into()),
                // The public key checks tokens, the private one signs them.
                ("service-account-key-file", at("accounts.pub")),
                ("service-account-signing-key-file", at("accounts.key")),
                // Nodes of tests have no kubelet that would take this taint away.
                ("disable-admission-plugins", "TaintNodesByCondition".into()),
            ],
        )?);
        Ok(())
    }

    /// Waits until the API server answers that it is ready.
    ///
    /// # Errors
    /// Where the API server ends, or that takes longer than two minutes.
    pub fn wait_until_ready(&mut self) -> io::Result<()> {
        let began = Instant::now();
        let ask = |plane: &Self| plane.kubectl().args(["get", "--raw", "/readyz"]).stderr(Stdio::null()).output();
        while !ask(self)?.status.success() {
            let ended = self.api_server.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = ended {
                return Err(self.problem(&format!("the API server ended: {status}")));
            }
            if began.elapsed() > Duration::from_secs(120) {
                return Err(self.problem("the API server is not ready after two minutes"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// An error with the last lines of the log of the API server.
    fn problem(&self, what: &str) -> io::Error {
        let tail = || -> io::Result<String> {
            let mut log = fs::File::open(self.directory.join("kube-apiserver.log"))?;
            let length = i64::try_from(log.metadata()?.len()).unwrap_or(i64::MAX);
            log.seek(io::SeekFrom::End(-length.min(TAIL)))?;
            let mut bytes = Vec::new();
            log.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        io::Error::other(format!("{what}; the end of its log:\n{}", tail().unwrap_or_default()))
    }

    /// Starts the job controller and its like, again where they were killed.
    ///
    /// # Errors
    /// Where the program cannot be started.
    pub fn start_controllers(&mut self) -> io::Result<()> {
        let keys = self.directory.join("accounts.key").display().to_string();
        let more = [("service-account-private-key-file", keys), ("controllers", CONTROLLERS.into())];
        self.others[0] = Some(self.follower("kube-controller-manager", self.ports[1], &more)?);
        Ok(())
    }

    /// Starts kube-scheduler, again where it was killed.
    ///
    /// # Errors
    /// Where the program cannot be started.
    pub fn start_scheduler(&mut self) -> io::Result<()> {
        self.others[1] = Some(self.follower("kube-scheduler", self.ports[2], &[])?);
        Ok(())
    }

    /// Kills the API server without warning.
    pub fn kill_api_server(&mut self) {
        end(&mut self.api_server);
    }

    /// Address of its etcd.
    pub fn etcd_url(&self) -> String {
        self.etcd.config(None).endpoints.concat()
    }

    /// Kills etcd without warning, and starts it again.
    ///
    /// # Errors
    /// Where etcd cannot be started.
    pub fn restart_etcd(&mut self) -> io::Result<()> {
        self.etcd.kill();
        self.etcd.run()
    }

    /// Kills the job controller and kube-scheduler without warning, and starts them again.
    ///
    /// # Errors
    /// Where a program cannot be started.
    pub fn restart_followers(&mut self) -> io::Result<()> {
        self.others.iter_mut().for_each(end);
        self.start_controllers()?;
        self.start_scheduler()
    }

    /// A program that follows the API server.
    fn follower(&self, program: &str, port: u16, more: &[(&str, String)]) -> io::Result<Child> {
        let certificates = self.directory.join(format!("certs-{program}")).display().to_string();
        let mut options = vec![
            ("kubeconfig", self.kubeconfig().display().to_string()),
            ("leader-elect", "false".into()),
            ("bind-address", "127.0.0.1".into()),
            ("secure-port", port.to_string()),
            ("cert-dir", certificates),
            ("authentication-skip-lookup", "true".into()),
            ("kube-api-qps", "500".into()),
            ("kube-api-burst", "500".into()),
        ];
        options.extend(more.iter().cloned());
        self.child(program, &options)
    }

    fn child(&self, program: &str, options: &[(&str, String)]) -> io::Result<Child> {
        let binary = binary().ok_or_else(|| io::Error::other("the control plane is not built"))?;
        let log = self.directory.join(format!("{program}.log"));
        let log = fs::File::options().create(true).append(true).open(log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(binary).arg(program);
        command.args(options.iter().map(|(name, value)| format!("--{name}={value}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()
    }

    /// Resident memory of the API server and its followers, KiB.
    pub fn resident_kib(&self) -> u64 {
        let children = self.api_server.iter().chain(self.others.iter().flatten());
        let pages = children.filter_map(|child| {
            let text = fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
            text.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        pages.map(|pages| 4 * pages).sum()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.others.iter_mut().for_each(end);
        end(&mut self.api_server);
    }
}

/// Kills a child, and waits until it is gone.
fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Certificates of the API server, and the key that signs tokens of service accounts.
fn certify(directory: &Path) -> Result<io::Result<()>, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
    let server = params.signed_by(&key, &ca)?;
    let accounts = KeyPair::generate()?;
    let files = [
        ("ca.pem", ca.pem()),
        ("server.pem", server.pem()),
        ("server.key", key.serialize_pem()),
        ("accounts.key", accounts.serialize_pem()),
        ("accounts.pub", accounts.public_key_pem()),
    ];
    let write = |(name, text): &(&str, String)| fs::write(directory.join(name), text);
    Ok(fs::create_dir_all(directory).and_then(|()| files.iter().try_for_each(write)))
}
