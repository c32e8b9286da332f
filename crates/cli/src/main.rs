//! The `teak` command.

fn main() {
    println!("teak {}", env!("CARGO_PKG_VERSION"));
}
