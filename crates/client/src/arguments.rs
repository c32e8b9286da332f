//! The connection options of the command line, to be flattened into the arguments of a subcommand.

use clap::{ArgAction, Args};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of the connection. What is not given here comes from option files, the environment or the prompt.
///
/// `-h` is the host, as in the `mariadb` client, so a subcommand that flattens this needs `disable_help_flag`.
#[derive(Args, Debug, Default, Clone)]
#[command(next_help_heading = "Connection")]
// Of a name of its own, since those who flatten it have a group named after theirs.
#[group(id = "connection")]
pub struct Arguments {
    /// Print this help
    #[arg(long, short = '?', action = ArgAction::Help, help_heading = None)]
    pub help: Option<bool>,
    /// Read options only from this file
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    pub defaults_file: Option<PathBuf>,
    /// Read this file after the global option files
    #[arg(long, value_name = "FILE")]
    pub defaults_extra_file: Option<PathBuf>,
    /// Read also the option groups with this suffix
    #[arg(long, value_name = "SUFFIX")]
    pub defaults_group_suffix: Option<String>,
    /// Read no option file
    #[arg(long)]
    pub no_defaults: bool,
    /// Connect to this host [default: localhost, by its socket]
    #[arg(long, short = 'h')]
    pub host: Option<String>,
    /// TCP port [default: $MYSQL_TCP_PORT or 3306]
    #[arg(long, short = 'P')]
    pub port: Option<u16>,
    /// Socket file [default: $MYSQL_UNIX_PORT or /run/mysqld/mysqld.sock]
    #[arg(long, short = 'S', value_name = "FILE")]
    pub socket: Option<PathBuf>,
    /// tcp or socket
    #[arg(long)]
    pub protocol: Option<String>,
    /// User [default: the one who calls this]
    #[arg(long, short = 'u')]
    pub user: Option<String>,
    /// Password; without a value it is asked for. Safer in an option file or in $MYSQL_PWD
    #[arg(long, short = 'p', num_args = 0..=1, require_equals = true, default_missing_value = "", hide_default_value = true)]
    pub password: Option<Option<String>>,
    /// Database to use
    #[arg(long, short = 'D')]
    pub database: Option<String>,
    /// Character set of the connection until the dump sets one
    #[arg(long, value_name = "NAME")]
    pub default_character_set: Option<String>,
    /// Give up to connect after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub connect_timeout: Option<u64>,
    /// Refuse a connection that is not encrypted
    #[arg(long, overrides_with = "skip_ssl")]
    pub ssl: bool,
    /// Do not encrypt
    #[arg(long, visible_alias = "disable-ssl")]
    pub skip_ssl: bool,
    /// Certificates, in PEM, of the authorities that the server's certificate must come from
    #[arg(long, value_name = "FILE")]
    pub ssl_ca: Option<PathBuf>,
    /// A directory of such files
    #[arg(long, value_name = "DIR")]
    pub ssl_capath: Option<PathBuf>,
    /// The client's own certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub ssl_cert: Option<PathBuf>,
    /// The key of the client's certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub ssl_key: Option<PathBuf>,
    /// The server's certificate must name the host
    #[arg(long)]
    pub ssl_verify_server_cert: bool,
    /// TLSv1.2, TLSv1.3 or both with a comma
    #[arg(long, value_name = "VERSIONS")]
    pub tls_version: Option<String>,
}

/// Rewrites `-pSECRET`, as the `mariadb` client takes it, into `--password=SECRET`; `-p` alone stays and asks.
///
/// A value that follows after a space is never the password: it would swallow the first file name.
pub fn split_short_password(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut only_names = false;
    let rewrite = |argument: OsString| {
        only_names |= argument == "--";
        match argument.to_str().and_then(|text| text.strip_prefix("-p")) {
            Some(secret) if !only_names && !secret.is_empty() => format!("--password={secret}").into(),
            _ => argument,
        }
    };
    arguments.into_iter().map(rewrite).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Command {
        #[command(flatten)]
        client: Arguments,
        files: Vec<String>,
    }

    fn parse(arguments: &[&str]) -> Command {
        let arguments = std::iter::once("teak").chain(arguments.iter().copied()).map(OsString::from);
        Command::try_parse_from(split_short_password(arguments)).unwrap()
    }

    #[test]
    fn a_password_never_swallows_a_file_name() {
        let command = parse(&["-p", "dump.sql"]);
        assert_eq!(command.client.password.as_ref().map(|p| p.as_deref().unwrap_or("")), Some(""));
        assert_eq!(command.files, ["dump.sql"]);
        let command = parse(&["--password", "dump.sql"]);
        assert_eq!(command.files, ["dump.sql"]);
    }

    #[test]
    fn the_forms_of_the_mariadb_client_are_understood() {
        for form in [&["-psecret"][..], &["--password=secret"]] {
            assert_eq!(parse(form).client.password, Some(Some("secret".into())));
        }
        let command = parse(&["-h", "db1", "-P3307", "-uroot", "-S/tmp/s", "-D", "x", "--", "-pfile"]);
        assert_eq!((command.client.host.as_deref(), command.client.port), (Some("db1"), Some(3307)));
        assert_eq!(
            (command.client.user.as_deref(), command.client.database.as_deref()),
            (Some("root"), Some("x"))
        );
        assert_eq!(command.files, ["-pfile"]);
    }
}
