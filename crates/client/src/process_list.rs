//! Passwords of the command line, taken out of what `ps` shows of this process.
//!
//! As the `mariadb` client does, the characters are overwritten where the kernel keeps the arguments. They were there
//! for the moment before, so an option file or `MYSQL_PWD` is the better place. The kernel tells where in
//! `/proc/self/stat` and lets a process write its own memory through `/proc/self/mem`: no pointer has to be trusted for
//! that.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

const OPTION: &[u8] = b"--password=";
const SHORT: &[u8] = b"-p";
/// The field of `/proc/self/stat` with the address of the first argument, counted from the one behind the program's
/// name.
const ARG_START: usize = 45;

/// Overwrites each password in `arguments`, which are those that the process was started with. Where the kernel does
/// not let it (no `/proc`), nothing happens.
pub fn hide_passwords(arguments: &[OsString]) {
    let secrets = secrets(arguments);
    if secrets.is_empty() {
        return;
    }
    // Best effort by design: a load does not fail because its password was visible.
    let _ = overwrite(&secrets);
}

/// Offset and length of each password, in the arguments as they lie in memory, each with a zero behind it.
fn secrets(arguments: &[OsString]) -> Vec<(u64, usize)> {
    let mut at = 0;
    let mut found = Vec::new();
    for argument in arguments.iter().map(|argument| argument.as_bytes()) {
        if argument == b"--" {
            break;
        }
        let secret =
            argument.strip_prefix(OPTION).or_else(|| argument.strip_prefix(SHORT)).unwrap_or_default();
        if !secret.is_empty() {
            found.push(((at + argument.len() - secret.len()) as u64, secret.len()));
        }
        at += argument.len() + 1;
    }
    found
}

fn overwrite(secrets: &[(u64, usize)]) -> std::io::Result<()> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name may have spaces and parentheses of its own.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let start = fields.split(' ').nth(ARG_START).and_then(|field| field.parse::<u64>().ok());
    let Some(start) = start.filter(|&start| start != 0) else { return Ok(()) };
    let memory = File::options().write(true).open("/proc/self/mem")?;
    for (offset, length) in secrets {
        memory.write_all_at(&vec![b'x'; *length], start + offset)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arguments: &[&str]) -> Vec<(u64, usize)> {
        secrets(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn passwords_are_found_in_each_form_and_nothing_else() {
        assert_eq!(found(&["teak", "load", "-psecret", "-p", "--port=1", "f"]), [(12, 6)]);
        assert_eq!(found(&["teak", "--password=ab", "--password=", "--password"]), [(16, 2)]);
        assert_eq!(found(&["teak", "-P3307", "--", "-pfile"]), []);
    }
}
