//! Listening at addresses in Go's form.

use std::io;

use tokio::net::TcpListener;

/// Listens on an address in Go's form.
///
/// `:8080` is that port on all addresses of the machine.
///
/// # Errors
///
/// Returns an error if the address is in use or invalid.
pub async fn listen(address: &str) -> io::Result<TcpListener> {
    match address.strip_prefix(':') {
        // This binds both IPv6 and IPv4 if the machine has both.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    }
}
