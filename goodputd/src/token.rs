//! `live token`: a random token for the interface of the daemon, and its table for the deployment file.

use std::io::Read;

use goodput_configs::live::token::Token;
use goodput_console::{CommandError, print, say};
use goodput_executor::daemon::interface::api::hash;

use crate::args::NewToken;

/// Prints a new token to standard output, and the table for the deployment file to standard error.
pub fn run(options: &NewToken) -> Result<(), CommandError> {
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(CommandError::failed)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let table = Token {
        name: options.name.clone(),
        sha256: hash(&token),
        verbs: options.verbs.clone(),
        tenants: options.tenants.clone(),
        user: options.user.clone(),
        max_priority: options.max_priority,
        role: None,
    };
    let options = "--verb, --tenant, --user and --max-priority fill the table";
    table.check().map_err(|error| CommandError::input(error).with_help(options))?;
    let table = toml::to_string(&table).map_err(CommandError::failed)?;
    say("The token, to be kept by its holder, is on stdout; this table belongs in the deployment file:");
    say(&format!("[[api.tokens]]\n{table}"));
    print(&format!("{token}\n"))
}
