//! Opens files of unknown type: opening a named pipe or device could block forever.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Paths of open streams, such as those of `<(…)` in a shell, and `/dev/null`.
const STREAMS: [&str; 4] = ["/dev/fd", "/dev/stdin", "/dev/null", "/proc/self/fd"];

/// Opens a regular file or a directory for reading. [`STREAMS`] are opened as they are.
///
/// # Errors
///
/// Returns an error if it cannot be opened, or is of another type.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a regular file or a directory with these options, without blocking.
///
/// # Errors
///
/// Returns the errors of [`open`].
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if STREAMS.iter().any(|stream| path.starts_with(stream)) {
        return options.open(path);
    }
    // Opening a socket fails as well, but with an error that does not name the cause.
    fs::metadata(path).map_or(Ok(()), |metadata| check(metadata.file_type()))?;
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag of open fits an int");
    let file = options.custom_flags(flags).open(path)?;
    // It may have been replaced by another file.
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file.
///
/// # Errors
///
/// Returns an error if it cannot be read, or is of another type.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

fn check(kind: FileType) -> io::Result<()> {
    let name = match kind {
        kind if kind.is_file() || kind.is_dir() => return Ok(()),
        kind if kind.is_fifo() => "named pipe",
        kind if kind.is_socket() => "socket",
        _ => "device",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is a {name}, not a regular file")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    /// Opening such a path used to block forever.
    #[test]
    fn special_files_are_refused_without_blocking() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        std::os::unix::fs::symlink("pipe", at("link")).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        fs::write(at("file"), "content").unwrap();
        for (path, name) in [
            (at("pipe"), "named pipe"),
            (at("link"), "named pipe"),
            (at("socket"), "socket"),
            ("/dev/zero".into(), "device"),
        ] {
            let error = read(&path).unwrap_err().to_string();
            assert_eq!(error, format!("it is a {name}, not a regular file"));
            assert!(open_with(&path, OpenOptions::new().write(true)).is_err(), "{name}");
        }
        assert_eq!(read(&at("file")).unwrap(), b"content");
        assert_eq!(read(Path::new("/dev/null")).unwrap(), b"");
        assert_eq!(read(&at("nowhere")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(read(directory.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
    }
}
