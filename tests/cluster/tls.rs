//! Encrypted connections to workers and between them.

use std::process::Command;

use serrate::cluster::{ClientConfig, Cluster};

use crate::processes::{
    Pair, WorkerProcess, create_tables, list_addresses, shipped_file, start_workers,
};

const FAST: &str = "SELECT g, count(*) FROM p GROUP BY g ORDER BY g";
/// A join for which the workers send rows to each other.
const JOIN: &str = "SELECT count(*) FROM p a JOIN p b ON a.subject_id = b.subject_id + 1";

fn start_encrypted() -> Vec<WorkerProcess> {
    let certificate = shipped_file("serve/certificate.pem");
    let key = shipped_file("serve/key.pem");
    let args = ["--tls-cert", &certificate, "--tls-key", &key, "--worker-timeout", "5"];
    (0..2).map(|_| WorkerProcess::start_worker(&args)).collect()
}

async fn connect_with(workers: &[WorkerProcess], authority: Option<&str>) -> Pair {
    let mut config = ClientConfig::new(&list_addresses(workers));
    config.authority = authority.map(|file| std::fs::read_to_string(shipped_file(file)).unwrap());
    Pair::with_config(config).await
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_workers_run_queries_and_joins() {
    let workers = start_encrypted();
    let folder = tempfile::tempdir().unwrap();
    let mut pair = connect_with(&workers, Some("serve/certificate.pem")).await;
    create_tables(&pair, folder.path(), 500).await;
    pair.check_divided(FAST).await;
    pair.check_divided(JOIN).await;
    pair.check_failures();
}

/// If the certificates do not match, workers run nothing, and the note says what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn notes_say_which_certificate_is_wrong() {
    let encrypted = start_encrypted();
    let plain = start_workers(2);
    let folder = tempfile::tempdir().unwrap();
    for (i, (workers, authority, words)) in [
        (&encrypted, Some("cluster/other.pem"), "its certificate is not accepted"),
        (&encrypted, None, "pass --worker-ca"),
        (&plain, Some("serve/certificate.pem"), "it does not encrypt"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut pair = connect_with(workers, authority).await;
        create_tables(&pair, &folder.path().join(i.to_string()), 100).await;
        pair.check_query(FAST).await;
        pair.check_failures();
        assert_eq!((pair.divided, pair.whole.len()), (0, 1));
        for worker in workers {
            let reason = format!("worker {} cannot be reached", worker.address);
            assert!(pair.whole[0].contains(&reason), "{:?}", pair.whole);
        }
        assert!(pair.whole[0].contains(words), "{words}: {:?}", pair.whole);
    }
}

#[test]
fn invalid_certificate_and_key_files_are_refused() {
    let certificate = shipped_file("serve/certificate.pem");
    let key = shipped_file("serve/key.pem");
    let mut config = ClientConfig::new("127.0.0.1:7100");
    let (certificate, key) = (certificate.as_str(), key.as_str());
    let secret = std::fs::read_to_string(key).unwrap();
    for text in ["", "secret", secret.as_str()] {
        config.authority = Some(text.to_owned());
        let refused = Cluster::new(&config).unwrap_err().strip_backtrace();
        assert!(refused.contains("--worker-ca does not name a certificate"), "{refused}");
        assert!(text.is_empty() || !refused.contains(text), "{refused}");
    }
    let folder = shipped_file("serve");
    let folder = folder.as_str();
    for (args, words) in [
        (vec!["--tls-cert", key, "--tls-key", certificate], "private key"),
        (vec!["--tls-cert", certificate], "--tls-key"),
        (vec!["--worker-ca", certificate], "--tls-cert"),
        (
            vec!["--root", folder, "--tls-cert", certificate, "--tls-key", key],
            "every client can read",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serrate"));
        let output =
            command.args(["worker", "--listen", "127.0.0.1:0"]).args(&args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
}
