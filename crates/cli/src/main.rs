//! The `teak` command; see the library.

fn main() -> std::process::ExitCode {
    teak_cli::main()
}
