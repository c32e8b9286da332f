//! Servers that an option names by a URL.

use teak_client::{Error, Settings};

/// Where the server is that `option` names: the URL over the other options.
pub fn settings(option: &str, url: &str, arguments: &teak_client::Arguments) -> Result<Settings, Error> {
    let mut arguments = arguments.clone();
    // The URL is not repeated: it may have a password.
    let wrong = |why: &str| Error::Settings(format!("{option}: {why}"));
    let rest = ["mariadb://", "mysql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or_else(|| wrong("the URL is not mariadb://[USER@][HOST[:PORT]], or mysql://"))?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (user, address) = rest.rsplit_once('@').map_or((None, rest), |(user, address)| (Some(user), address));
    if user.is_some_and(|user| user.contains(':')) {
        return Err(wrong(
            "a password does not belong into the URL, where others see it: an option file, $MYSQL_PWD or -p has it",
        ));
    }
    if address.contains(['/', '?', '#']) {
        return Err(wrong("there is more than host and port"));
    }
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let number = port.parse().map_err(|_| wrong("the port is no number"))?;
            (host, Some(number))
        }
        _ => (address, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        arguments.user = Some(user.to_string());
    }
    if !host.is_empty() {
        arguments.host = Some(host.to_string());
    }
    arguments.port = port.or(arguments.port);
    Settings::read(&arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use teak_client::Address;

    fn address(url: &str) -> Result<(Address, String), String> {
        let arguments =
            teak_client::Arguments { no_defaults: true, user: Some("me".into()), ..Default::default() };
        settings("--source", url, &arguments)
            .map(|found| (found.address, found.user))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_url_has_user_host_and_port_and_no_password() {
        let tcp = |host: &str, port| Address::Tcp { host: host.into(), port };
        assert_eq!(address("mariadb://repl@db1:3307/"), Ok((tcp("db1", 3307), "repl".into())));
        assert_eq!(address("mariadb://[::1]:3307"), Ok((tcp("::1", 3307), "me".into())));
        assert!(matches!(address("mariadb://localhost"), Ok((Address::Socket(_), _))));
        assert!(matches!(address("mariadb://"), Ok((Address::Socket(_), _))));
        assert_eq!(address("mysql://db1"), Ok((tcp("db1", 3306), "me".into())));
        for url in ["http://db1", "db1", "mariadb://db1:x", "mariadb://db1/shop", "mariadb://db1:3306/?x=y"] {
            assert!(address(url).is_err(), "{url}");
        }
        for url in [
            "mariadb://me:secret@db1",
            "mysql://me:secret@db1/",
            "me:secret@db1",
            "mysql://me:secret/x@db1:y",
        ] {
            let error = address(url).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(address("mariadb://me:secret@db1").unwrap_err().contains("$MYSQL_PWD"));
    }
}
