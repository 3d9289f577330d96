//! The program: the command line and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    tagboat::cli::run(std::env::args_os())
}
