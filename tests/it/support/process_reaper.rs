//! Runs servers that are killed when the tests end, also if the tests are killed.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::program::installed;

/// A shell script that starts the server and waits for the end of its input.
///
/// The input ends when the reaper is dropped, and also when the process of the tests is killed, because the
/// pipe is closed with it. Signals of a terminal go to the shell as well, which must not end before the
/// server. A directory is removed with the server; another server that ends at the same time may still write
/// there, hence the second try.
const SCRIPT: &str = r#"trap '' INT QUIT TERM HUP
directory=$1; shift
"$@" <&- & server=$!
read -r _
kill -9 "$server"; wait "$server"
[ -z "$directory" ] || rm -rf "$directory" || { sleep 1; rm -rf "$directory"; }"#;

/// A running server, with the shell that kills it.
pub(crate) struct ProcessReaper {
    shell: Child,
    output: File,
}

impl ProcessReaper {
    /// Starts `command`; only its program, arguments, environment and directory are used.
    pub(crate) fn start(command: &Command) -> io::Result<Self> {
        Self::start_with(command, "".as_ref())
    }

    /// Starts `command`, and removes `directory` when it has ended.
    pub(crate) fn start_with(command: &Command, directory: &Path) -> io::Result<Self> {
        let output = tempfile::tempfile()?;
        let mut shell = Self::shell(command, directory);
        shell.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        Ok(Self { shell: shell.spawn()?, output })
    }

    /// The shell that runs a server until the end of its own input.
    pub(crate) fn shell(command: &Command, directory: &Path) -> Command {
        let mut shell = Command::new(installed("sh"));
        shell.args(["-c", SCRIPT, "reaper"]).arg(directory);
        shell.arg(command.get_program()).args(command.get_args()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            shell.current_dir(directory);
        }
        shell
    }

    /// Kills the server. The shell and the directory stay until the reaper is dropped.
    pub(crate) fn kill_server(&self) {
        let shell = self.shell.id();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        for child in children.split_whitespace() {
            let process = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
            rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
            // The shell does not wait for it before its own end, so it stays as a zombie.
            let is_over = || {
                let state = std::fs::read_to_string(format!("/proc/{child}/stat"));
                state.map_or(true, |state| state.contains(") Z "))
            };
            while !is_over() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }

    /// The output of the server so far.
    pub(crate) fn output(&self) -> String {
        let mut bytes = Vec::new();
        let mut output = &self.output;
        output.rewind().and_then(|()| output.read_to_end(&mut bytes)).expect("a file of ours can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for ProcessReaper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ended = self.shell.wait();
    }
}
