//! A connection, with TLS or without.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) type Connection = BufReader<Stream>;

pub(crate) enum Stream {
    Plain(TcpStream),
    Secured(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    pub(crate) fn new(socket: TcpStream, tls: Option<&Arc<ServerConfig>>) -> Self {
        match tls {
            None => Self::Plain(socket),
            Some(configuration) => {
                let connection =
                    ServerConnection::new(Arc::clone(configuration)).expect("a configuration of ours");
                Self::Secured(Box::new(StreamOwned::new(connection, socket)))
            }
        }
    }

    /// Closes the connection in order.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Self::Secured(stream) = self {
            stream.conn.send_close_notify();
        }
        self.flush()
    }

    /// Makes the kernel send a reset when the connection is dropped.
    /// Without it, the connection would end in an orderly way.
    pub(crate) fn reset_on_drop(&self) -> io::Result<()> {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Secured(stream) => &stream.sock,
        };
        Ok(rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO))?)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Secured(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Secured(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Secured(stream) => stream.flush(),
        }
    }
}
