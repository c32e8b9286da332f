//! `teak binlog`: shows binary logs of MariaDB and MySQL, from files or as a server sends them. The decoder is
//! `crates/binlog`; this reads and prints.
//!
//! | file | is about |
//! |---|---|
//! | `files.rs` | logs in files, and on standard input |
//! | `source.rs` | logs that a server sends |
//! | `start.rs` | what comes before the transactions to begin behind |
//! | `printer.rs` | from events to lines |
//! | `text.rs` | events for people |
//! | `json.rs` | JSON as text |
//! | `event_json.rs` | events in JSON |
//! | `value_json.rs` | rows and values in JSON |
//! | `error.rs` | why it fails |

mod error;
mod event_json;
mod files;
mod json;
mod printer;
mod source;
mod start;
mod text;
mod value_json;

pub use error::BinlogError;

use printer::{Form, Printer};
use start::Start;
use std::io::Write;
use std::path::PathBuf;
use teak_replicate::{Asked, Beginning};

/// The command line.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Files of a log, in their order; - is standard input
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    files: Vec<PathBuf>,
    /// Read the log of this server, as a replica does: mariadb://[USER@][HOST[:PORT]], or mysql://, with the options
    /// below for what is not in it. The password comes from an option file, $MYSQL_PWD or -p
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Only what comes after these transactions: GTIDs of MariaDB, such as 0-1-100,2-1-7, or a set of MySQL
    #[arg(long, value_name = "GTID")]
    start: Option<String>,
    /// One JSON object a line for each event, instead of text
    #[arg(long)]
    json: bool,
    /// Go on when the server has sent all, and show what comes
    #[arg(long, requires = "source")]
    follow: bool,
    /// As which replica to ask: none other of the server may have the number [default: a random one above 2^31]
    #[arg(long, value_name = "NUMBER", requires = "source")]
    server_id: Option<u32>,
    #[command(flatten)]
    client: teak_client::Arguments,
}

/// Shows the log.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BinlogError> {
    let start = arguments.start.as_deref().map(str::parse::<Start>).transpose()?;
    let form = if arguments.json { Form::Json } else { Form::Text };
    let mut out = std::io::BufWriter::new(out);
    let mut printer = Printer::new(&mut out, form);
    let read = match &arguments.source {
        Some(url) => {
            let settings = crate::url::settings("--source", url, &arguments.client)?;
            let beginning = start.map_or(Beginning::Oldest, |start| start.beginning());
            let asked = Asked { beginning, follow: arguments.follow, server_id: arguments.server_id };
            source::show(&settings, &asked, &mut printer)
        }
        None => files::show(&arguments.files, start, &mut printer),
    };
    // What was decoded before an error is shown, too.
    let flushed = out.flush().map_err(BinlogError::Output);
    read.and(flushed)
}
