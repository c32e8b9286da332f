//! Where the server is and who asks: command line over option files over the environment over defaults.

use super::option_file::OptionFiles;
use super::packet::{Packets, Socket};
use super::{handshake, silence, Arguments, Connection, Error};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_SOCKET: &str = "/run/mysqld/mysqld.sock";
const DEFAULT_PORT: u16 = 3306;

/// Everything that a connection needs; any number can be made from it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the server listens.
    pub address: Address,
    /// Who asks.
    pub user: String,
    /// Empty: without one.
    pub password: String,
    /// The default database, if there is one.
    pub database: Option<String>,
    /// That of statements and answers.
    pub character_set: String,
    /// How long a connection over TCP may take to be made.
    pub connect_timeout: Option<Duration>,
    /// A server that says nothing for so long, or takes nothing, is asked over another connection whether it is at work
    /// for the silent one; if not, that is lost. Without: it is waited for.
    pub patience: Option<Duration>,
    /// Whether the server takes several statements at once, separated by semicolons. No option: it is for statements of
    /// this program.
    pub several_statements: bool,
    /// Whether LOAD DATA LOCAL may ask for what the program gives it ([`Connection::load`]): never for a file.
    pub local_data: bool,
    /// How a connection over TCP is encrypted.
    pub tls: Tls,
}

/// Where the server listens.
#[derive(Debug, Clone, PartialEq)]
pub enum Address {
    /// On this machine.
    Socket(PathBuf),
    /// At a port of a host.
    Tcp {
        /// A name or an address.
        host: String,
        /// Its number.
        port: u16,
    },
}

/// How a connection is encrypted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tls {
    /// Whether it is.
    pub policy: TlsPolicy,
    /// A file with certificates of those who may sign the server's.
    pub ca: Option<PathBuf>,
    /// A directory with such.
    pub capath: Option<PathBuf>,
    /// This side's certificate.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The certificate must be valid for the host's name.
    pub verify_host: bool,
    /// Those that are allowed, as `--tls-version` has them; without, all that are known.
    pub versions: Option<String>,
}

impl Tls {
    /// Whether a server whose certificate nobody has signed whom the options trust is refused.
    pub fn checks_certificate(&self) -> bool {
        self.ca.is_some() || self.capath.is_some() || self.verify_host
    }
}

/// Whether a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum TlsPolicy {
    /// It is not.
    Never,
    /// Over TCP, if the server has it.
    #[default]
    IfOffered,
    /// A server that has it not is refused.
    Required,
}

impl Settings {
    /// Reads the option files and the environment, and asks for the password where `--password` has no value.
    pub fn read(arguments: &Arguments) -> Result<Settings, Error> {
        let files = read_files(arguments)?;
        let of_file = |name: &str| files.get(name).flatten().map(str::to_string);
        let path_of_file = |name: &str| of_file(name).map(PathBuf::from);
        let flag_of_file = |name: &str| files.get(name).map(|value| is_true(value.unwrap_or("1")));
        refuse_what_would_be_missing(&files)?;
        let user = arguments.user.clone().or_else(|| of_file("user")).unwrap_or_else(calling_user);
        let tls = Tls {
            policy: TlsPolicy::IfOffered,
            ca: arguments.ssl_ca.clone().or_else(|| path_of_file("ssl-ca")),
            capath: arguments.ssl_capath.clone().or_else(|| path_of_file("ssl-capath")),
            cert: arguments.ssl_cert.clone().or_else(|| path_of_file("ssl-cert")),
            key: arguments.ssl_key.clone().or_else(|| path_of_file("ssl-key")),
            verify_host: arguments.ssl_verify_server_cert
                || flag_of_file("ssl-verify-server-cert").unwrap_or(false),
            versions: arguments.tls_version.clone().or_else(|| of_file("tls-version")),
        };
        let asked = arguments.ssl || tls.cert.is_some() || tls.checks_certificate();
        let policy = match flag_of_file("ssl") {
            _ if arguments.skip_ssl => TlsPolicy::Never,
            _ if asked => TlsPolicy::Required,
            Some(true) => TlsPolicy::Required,
            Some(false) => TlsPolicy::Never,
            None => TlsPolicy::IfOffered,
        };
        let seconds = match of_file("connect-timeout") {
            Some(text) if arguments.connect_timeout.is_none() => Some(number("connect-timeout", &text)?),
            _ => arguments.connect_timeout,
        };
        Ok(Settings {
            address: address(arguments, &files)?,
            password: password(arguments, &files)?,
            user,
            database: arguments.database.clone().or_else(|| of_file("database")),
            character_set: character_set(arguments, &files),
            several_statements: false,
            local_data: false,
            patience: None,
            connect_timeout: seconds.filter(|&seconds| seconds > 0).map(Duration::from_secs),
            tls: Tls { policy, ..tls },
        })
    }

    /// The character set that a connection would have, for who makes none.
    pub fn character_set(arguments: &Arguments) -> Result<String, Error> {
        Ok(character_set(arguments, &read_files(arguments)?))
    }

    /// A new connection, authenticated, with the database and the character set chosen.
    pub fn connect(&self) -> Result<Connection, Error> {
        let mut connection = self.log_in()?;
        if let Some(patience) = self.patience {
            silence::watch(&mut connection, self, patience)?;
        }
        Ok(connection)
    }

    /// A new connection to a server of which nothing but an answer in time is taken: who is silent for longer than
    /// `patience` is lost, and is not asked whether he works. For statements that are short.
    pub fn connect_impatiently(&self, patience: Duration) -> Result<Connection, Error> {
        let connect_timeout = Some(self.connect_timeout.map_or(patience, |limit| limit.min(patience)));
        Settings { connect_timeout, patience: Some(patience), ..self.clone() }.log_in()
    }

    /// The same, of which nothing but an answer in time is taken.
    fn log_in(&self) -> Result<Connection, Error> {
        let mut packets = Packets::new(self.dial()?);
        if let Some(patience) = self.patience {
            packets.set_timeouts(patience)?;
        }
        let mut connection = handshake::perform(packets, self)?;
        if self.character_set != "utf8mb4" {
            connection.execute(format!("SET NAMES `{}`", self.character_set.replace('`', "``")))?;
        }
        Ok(connection)
    }

    fn dial(&self) -> Result<Socket, Error> {
        match &self.address {
            Address::Socket(path) => {
                let what = format!("cannot connect to the server through the socket {}", path.display());
                Ok(Socket::Unix(UnixStream::connect(path).map_err(Error::io(what))?))
            }
            Address::Tcp { host, port } => {
                let what = || format!("cannot connect to the server on {host}:{port}");
                let stream = dial_tcp(host, *port, self.connect_timeout)
                    .map_err(|error| Error::Io { what: what(), error })?;
                stream.set_nodelay(true).map_err(Error::io(what()))?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

/// Options by which a certificate or a cipher would be refused that is taken here.
fn refuse_what_would_be_missing(files: &OptionFiles) -> Result<(), Error> {
    match ["ssl-crl", "ssl-crlpath", "ssl-cipher"].into_iter().find(|name| files.get(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::Settings(format!(
            "the option {name} of the option files cannot be kept: this program knows no lists of revoked certificates \
             and chooses its own ciphers. --no-defaults, or --defaults-file with a file that does without it, connects"
        ))),
    }
}

fn character_set(arguments: &Arguments, files: &OptionFiles) -> String {
    let of_file = || files.get("default-character-set").flatten().map(str::to_string);
    let given = arguments.default_character_set.clone().or_else(of_file);
    given.filter(|name| name != "auto").unwrap_or_else(|| "utf8mb4".into())
}

/// Connects to the first address of the host that answers.
fn dial_tcp(host: &str, port: u16, timeout: Option<Duration>) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        let attempt = match timeout {
            Some(timeout) => TcpStream::connect_timeout(&address, timeout),
            None => TcpStream::connect(address),
        };
        match attempt {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn read_files(arguments: &Arguments) -> Result<OptionFiles, Error> {
    let mut groups: Vec<String> =
        ["client", "client-server", "client-mariadb", "mariadb-client", "teak"].map(String::from).to_vec();
    if let Some(suffix) = &arguments.defaults_group_suffix {
        groups.extend(groups.clone().iter().map(|group| format!("{group}{suffix}")));
    }
    let mut files = OptionFiles::new(groups);
    if arguments.no_defaults {
        return Ok(files);
    }
    if let Some(file) = &arguments.defaults_file {
        files.read(file)?;
        return Ok(files);
    }
    for file in ["/etc/my.cnf", "/etc/mysql/my.cnf"] {
        files.read_if_there(Path::new(file))?;
    }
    if let Some(file) = &arguments.defaults_extra_file {
        files.read(file)?;
    }
    if let Some(home) = std::env::var_os("HOME") {
        files.read_if_there(&PathBuf::from(home).join(".my.cnf"))?;
    }
    Ok(files)
}

/// As the `mariadb` client decides: localhost means the socket, unless a protocol, or a port on the command line, says
/// else.
fn address(arguments: &Arguments, files: &OptionFiles) -> Result<Address, Error> {
    let of_file = |name: &str| files.get(name).flatten().map(str::to_string);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = arguments.host.clone().or_else(|| of_file("host"));
    let local = host.as_deref().is_none_or(|host| host.is_empty() || host.eq_ignore_ascii_case("localhost"));
    let by_tcp = match arguments.protocol.clone().or_else(|| of_file("protocol")) {
        Some(name) if name.eq_ignore_ascii_case("tcp") => true,
        Some(name) if name.eq_ignore_ascii_case("socket") => false,
        Some(name) => return Err(Error::Settings(format!("unknown protocol '{name}': tcp or socket"))),
        None if arguments.socket.is_some() => false,
        None => !local || arguments.port.is_some(),
    };
    if !by_tcp {
        let socket = arguments.socket.clone().or_else(|| of_file("socket").map(PathBuf::from));
        let socket = socket.or_else(|| variable("MYSQL_UNIX_PORT").map(PathBuf::from));
        return Ok(Address::Socket(socket.unwrap_or_else(|| DEFAULT_SOCKET.into())));
    }
    let port = match (arguments.port, of_file("port").or_else(|| variable("MYSQL_TCP_PORT"))) {
        (Some(port), _) => port,
        (None, Some(text)) => number("port", &text)?,
        (None, None) => DEFAULT_PORT,
    };
    let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| "localhost".into());
    Ok(Address::Tcp { host, port: if port == 0 { DEFAULT_PORT } else { port } })
}

/// Command line, then option files, then `MYSQL_PWD`; asked for on the terminal if given without a value.
fn password(arguments: &Arguments, files: &OptionFiles) -> Result<String, Error> {
    let given = arguments.password.as_ref().map(|value| value.as_deref().filter(|text| !text.is_empty()));
    let prompt =
        || rpassword::prompt_password("Enter password: ").map_err(Error::io("cannot ask for the password"));
    match (given, files.get("password")) {
        (Some(Some(password)), _) => Ok(password.to_string()),
        (Some(None), _) | (None, Some(None)) => prompt(),
        (None, Some(Some(password))) => Ok(password.to_string()),
        (None, None) => Ok(std::env::var("MYSQL_PWD").unwrap_or_default()),
    }
}

/// The password that is the text of a file, without the end of its line.
pub fn password_of_file(file: &Path) -> Result<String, std::io::Error> {
    let text = std::fs::read_to_string(file)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_string())
}

fn calling_user() -> String {
    // SAFETY: geteuid has no arguments and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        return "root".into();
    }
    let names = ["USER", "LOGNAME"];
    names.iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| "UNKNOWN_USER".into())
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, Error> {
    text.trim().parse().map_err(|_| Error::Settings(format!("{name} is not a number: '{text}'")))
}

fn is_true(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "0" | "off" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_files() -> Arguments {
        Arguments { no_defaults: true, socket: None, ..Arguments::default() }
    }

    #[test]
    fn localhost_is_the_socket_and_other_hosts_are_tcp() {
        let address = |arguments: &Arguments| Settings::read(arguments).map(|settings| settings.address);
        let local =
            Arguments { host: Some("localhost".into()), socket: Some("/tmp/x".into()), ..without_files() };
        assert_eq!(address(&local).unwrap(), Address::Socket("/tmp/x".into()));
        let by_port = Arguments { port: Some(3307), ..without_files() };
        assert_eq!(address(&by_port).unwrap(), Address::Tcp { host: "localhost".into(), port: 3307 });
        let far = Arguments { host: Some("db".into()), port: Some(1), ..without_files() };
        assert_eq!(address(&far).unwrap(), Address::Tcp { host: "db".into(), port: 1 });
        let forced = Arguments { protocol: Some("SOCKET".into()), socket: Some("/s".into()), ..far };
        assert_eq!(address(&forced).unwrap(), Address::Socket("/s".into()));
        let wrong = Arguments { protocol: Some("pipe".into()), ..without_files() };
        assert!(matches!(address(&wrong), Err(Error::Settings(_))));
    }

    #[test]
    fn an_option_of_tls_demands_tls_and_the_command_line_wins_over_the_file() {
        let policy = |arguments: &Arguments| Settings::read(arguments).unwrap().tls.policy;
        assert_eq!(policy(&without_files()), TlsPolicy::IfOffered);
        assert_eq!(
            policy(&Arguments { ssl_verify_server_cert: true, ..without_files() }),
            TlsPolicy::Required
        );
        assert_eq!(policy(&Arguments { skip_ssl: true, ..without_files() }), TlsPolicy::Never);

        let file = std::env::temp_dir().join(format!("teak-settings-{}.cnf", std::process::id()));
        std::fs::write(&file, "[client]\nuser=file\npassword=p\nhost=h\nport=44\nskip-ssl\n").unwrap();
        let of_file = Arguments {
            defaults_file: Some(file.clone()),
            user: Some("line".into()),
            ..Arguments::default()
        };
        let settings = Settings::read(&of_file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!((settings.user.as_str(), settings.password.as_str()), ("line", "p"));
        assert_eq!(settings.address, Address::Tcp { host: "h".into(), port: 44 });
        assert_eq!(settings.tls.policy, TlsPolicy::Never);
    }

    #[test]
    fn what_would_refuse_a_certificate_is_not_passed_over() {
        let file = std::env::temp_dir().join(format!("teak-revoked-{}.cnf", std::process::id()));
        for line in ["ssl-crl=/x", "ssl_crlpath=/x", "ssl-cipher=AES256"] {
            std::fs::write(&file, format!("[client]\nssl-ca=/y\n{line}\n")).unwrap();
            let arguments = Arguments { defaults_file: Some(file.clone()), ..Arguments::default() };
            assert!(matches!(Settings::read(&arguments), Err(Error::Settings(_))), "{line}");
        }
        std::fs::remove_file(&file).unwrap();
    }
}
