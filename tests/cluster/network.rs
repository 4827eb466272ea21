//! Workers behind a slow network.

use std::time::Duration;

use serrate::cluster::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::processes::{Pair, create_tables, start_workers};

/// Most bytes that a proxy forwards at once. With [`DELAY`], each direction of a connection
/// transfers at most 1.6 MB/s.
const PIECE: usize = 16 << 10;
const DELAY: Duration = Duration::from_millis(10);

/// Starts a proxy that forwards connections slowly to the address `worker`, and returns its own
/// address.
async fn start_proxy(worker: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(&worker).await.unwrap();
            let (from_near, to_near) = near.into_split();
            let (from_far, to_far) = far.into_split();
            tokio::spawn(forward_slowly(from_near, to_far));
            tokio::spawn(forward_slowly(from_far, to_near));
        }
    });
    address
}

async fn forward_slowly(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut piece = vec![0; PIECE];
    while let Ok(bytes @ 1..) = from.read(&mut piece).await {
        tokio::time::sleep(DELAY).await;
        if to.write_all(&piece[..bytes]).await.is_err() {
            return;
        }
    }
}

/// Workers connect to each other at the addresses that the session uses, which are those of the
/// proxies.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_network_does_not_change_results() {
    let workers = start_workers(3);
    let mut addresses = Vec::new();
    for worker in &workers {
        addresses.push(start_proxy(worker.address.clone()).await);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut pair = Pair::with_config(ClientConfig::new(&addresses.join(","))).await;
    create_tables(&pair, folder.path(), 5000).await;
    for sql in [
        "SELECT g, count(*), sum(v) FROM p GROUP BY g ORDER BY g",
        "SELECT * FROM n",
        "SELECT * FROM p ORDER BY v DESC",
        "SELECT subject_id, x FROM p WHERE g = 3 ORDER BY subject_id LIMIT 7 OFFSET 600",
        "SELECT count(*), sum(a.v) FROM p a JOIN n b ON a.subject_id = b.subject_id + 1",
        "SELECT codes, count(*) AS c FROM n GROUP BY codes ORDER BY c DESC, codes",
    ] {
        pair.check_divided(sql).await;
    }
    pair.check_failures();
}
