//! Accounts and qualities of service of a private cluster: `slurmdbd`, and the MariaDB that it writes to.
//!
//! Both are processes of the cluster's own, on free ports, with all files in the cluster's directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use goodput_executor::machine::host_name;

use super::{PrivateCluster, free_ports, user};

/// Programs that accounts need beside those of every cluster.
pub(super) const PROGRAMS: [&str; 5] = ["mariadb-install-db", "mariadbd", "slurmdbd", "sacctmgr", "sacct"];

/// Longest time until a daemon answers: on a busy machine MariaDB takes ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ports of the two daemons.
#[derive(Clone, Debug)]
pub(super) struct Accounting {
    database: u16,
    slurmdbd: u16,
}

impl Accounting {
    pub fn new() -> std::io::Result<Self> {
        let ports = free_ports(2)?;
        Ok(Self { database: ports[0], slurmdbd: ports[1] })
    }

    /// Lines of `slurm.conf`: a job needs an account of its user, and a quality of service that the account has.
    pub fn configuration(&self, directory: &Path) -> String {
        format!(
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n\
             AccountingStoragePort={}\nAccountingStoragePass={}/run/munge.sock\n\
             AccountingStorageEnforce=associations,qos\nAccountingStorageTRES=gres/gpu\n",
            self.slurmdbd,
            directory.display()
        )
    }

    /// Starts both daemons, and waits until `sacctmgr` answers. The cluster's munge has to run.
    pub fn start(&self, cluster: &PrivateCluster) -> std::io::Result<[Child; 2]> {
        let place = cluster.directory.display();
        let data = format!("--datadir={place}/database");
        let mut install = cluster.command("mariadb-install-db");
        install.args(["--no-defaults", "--user=root", "--skip-test-db", "--auth-root-authentication-method=socket"]);
        let installed = install.arg(&data).stdin(Stdio::null()).output()?;
        if !installed.status.success() {
            let problem = String::from_utf8_lossy(&installed.stderr).into_owned();
            return Err(std::io::Error::other(format!("mariadb-install-db: {problem}")));
        }
        let grant = "CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1' IDENTIFIED BY 'private';\n\
                     GRANT ALL ON slurm.* TO 'slurm'@'127.0.0.1';\n";
        fs::write(cluster.directory.join("conf/database.sql"), grant)?;
        let database = [
            "--no-defaults".into(),
            "--user=root".into(),
            data,
            format!("--socket={place}/run/database.sock"),
            format!("--pid-file={place}/run/database.pid"),
            format!("--log-error={place}/log/database.log"),
            format!("--init-file={place}/conf/database.sql"),
            "--bind-address=127.0.0.1".into(),
            format!("--port={}", self.database),
            "--skip-name-resolve".into(),
        ];
        let database = cluster.child("mariadbd", &database)?;
        let file = cluster.directory.join("conf/slurmdbd.conf");
        fs::write(&file, self.slurmdbd(&cluster.directory))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        // Without a database slurmdbd looks again every five seconds only.
        until_it_listens(self.database)?;
        let slurmdbd = cluster.child("slurmdbd", &["-D".into()])?;
        until_it_listens(self.slurmdbd)?;
        Ok([database, slurmdbd])
    }

    fn slurmdbd(&self, directory: &Path) -> String {
        format!(
            "AuthType=auth/munge\nAuthInfo=socket={place}/run/munge.sock\nDbdHost={host}\nDbdAddr=127.0.0.1\n\
             DbdPort={}\nSlurmUser={user}\nLogFile={place}/log/slurmdbd.log\nPidFile={place}/run/slurmdbd.pid\n\
             StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={}\nStorageUser=slurm\n\
             StoragePass=private\nStorageLoc=slurm\n",
            self.slurmdbd,
            self.database,
            place = directory.display(),
            host = host_name().split('.').next().unwrap_or_default(),
            user = user(),
        )
    }
}

/// Waits until a daemon takes connections on a port of this machine.
fn until_it_listens(port: u16) -> std::io::Result<()> {
    let began = Instant::now();
    while let Err(error) = std::net::TcpStream::connect(("127.0.0.1", port)) {
        if began.elapsed() > PATIENCE {
            return Err(std::io::Error::new(error.kind(), format!("port {port}: {error}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
