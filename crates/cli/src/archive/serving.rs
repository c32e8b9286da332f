//! `teak archive serve`.

use super::{of_file, options, ArchiveError};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use teak_archive::{Archive, Options};
use teak_archive_http::{Login, Server, Settings};
use teak_console::service::{Service, Told};
use teak_console::{signals, terminal};
use teak_core::file::RealFileSystem;

#[derive(Args, Debug)]
pub(super) struct Serve {
    /// The archive
    path: PathBuf,
    /// Where to listen: an address with a port; port 0 is one that the system chooses
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Who may ask, with the password of --password-file
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// The password is the text of this file, without the end of its line
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Answer whoever reaches it, also from other machines, without a password
    #[arg(long, conflicts_with = "user")]
    no_password: bool,
}

pub(super) fn serve(serve: &Serve) -> Result<(), ArchiveError> {
    let login = login(serve)?;
    let settings = Settings {
        login,
        open_to_all: serve.no_password,
        directory: Some(serve.path.clone()),
        log: Arc::new(terminal::message),
        ..Settings::new(serve.listen)
    };
    let of_path = options(&serve.path);
    let options = Options { actor: serve.user.clone().unwrap_or(of_path.actor.clone()), ..of_path };
    let archive = super::told_who_has_it(Archive::open_on(Arc::new(RealFileSystem), options))?;
    let server = Server::bind(settings)?;
    let status = format!("serving {} at http://{}", serve.path.display(), server.address());
    terminal::message(&status);
    let mut service = Service::of_environment();
    server.serve(archive, &mut || {
        if let Some(service) = &mut service {
            service.tell(Told { is_ready: true, status: status.clone() }, Instant::now());
        }
        signals::interrupted()
    })?;
    Ok(())
}

fn login(serve: &Serve) -> Result<Option<Login>, ArchiveError> {
    let (Some(user), Some(file)) = (&serve.user, &serve.password_file) else { return Ok(None) };
    if user.is_empty() || user.contains(':') {
        return Err(ArchiveError::Usage("--user: a name, without a colon, is expected".into()));
    }
    let password = teak_client::password_of_file(file).map_err(of_file(file))?;
    match password.is_empty() {
        true => Err(ArchiveError::Usage(format!("{} has no password", file.display()))),
        false => Ok(Some(Login::new(user, &password))),
    }
}
