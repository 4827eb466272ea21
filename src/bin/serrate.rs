//! The executable `serrate`, which only calls the command-line interface in the library.

fn main() -> std::process::ExitCode {
    serrate::cli::main()
}
