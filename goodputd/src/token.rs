//! `live token`: a random token for the interface of the daemon, and its hash.

use std::io::Read;

use goodput_console::{CommandError, print, say};
use goodput_executor::daemon::interface::api::hash;

/// Prints a new token to standard output, and the table for the deployment file to standard error.
pub fn run() -> Result<(), CommandError> {
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(CommandError::failed)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    say("The token, to be kept by whoever uses it, is on stdout; its hash belongs into the deployment file:");
    say(&format!("[[api.tokens]]\nname = \"NAME\"\nrole = \"read\" # or \"write\"\nsha256 = \"{}\"", hash(&token)));
    print(&format!("{token}\n"))
}
