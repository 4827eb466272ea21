//! The `serrate` command.

fn main() -> std::process::ExitCode {
    serrate::cli::main()
}
