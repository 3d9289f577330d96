//! The wall clock of a program, shifted while it runs.
//!
//! The program is the real one: a library in front of the C library adds the seconds of a file to the wall clock. The monotonic
//! clock stays as it is, as when an administrator sets the clock.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A shift of the wall clock, at first none.
pub(crate) struct ShiftedClock {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl ShiftedClock {
    /// Compiles the library, with the C compiler that also links this test.
    pub(crate) fn new(directory: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/clock/shift.c");
        let (library, path) = (directory.join("shift.so"), directory.join("shift"));
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        assert!(compiled.unwrap().success());
        fs::write(&path, 0_i64.to_ne_bytes()).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        Self { library, path, file }
    }

    /// Returns the environment of a program that has this clock.
    pub(crate) fn environment(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", self.library.to_str().unwrap()), ("CLOCK_SHIFT", self.path.to_str().unwrap())]
    }

    /// Sets the clock to the true time and some seconds.
    pub(crate) fn set(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}
