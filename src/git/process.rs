//! A process with a deadline, which ends together with all processes that it started.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The maximum size of standard output, in bytes.
/// Larger output is not a listing that we asked for.
pub(super) const MAX_OUTPUT: usize = 16 * 1024 * 1024;

/// The maximum of standard error that is kept, in bytes.
const MAX_STDERR: usize = 64 * 1024;

/// The number of bytes that are read of a pipe at a time.
const CHUNK_SIZE: usize = 64 * 1024;

/// The interval between two calls of a watch.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The interval between two checks of a process that has closed its output.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The time that a process has to tidy up after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// The maximum silence of the output after the end of the process.
/// Other processes may still hold the output open during that time.
const MAX_SILENCE: Duration = Duration::from_secs(1);

/// Makes the process the head of its own process group.
/// One signal then reaches the process and all processes that it starts.
pub(super) fn set_process_group(command: &mut Command) {
    command.process_group(0);
}

/// A process that runs.
pub(super) struct Running {
    child: Child,
    chunks: Receiver<Chunk>,
}

/// The work of reading a pipe.
type ReadTask = Box<dyn FnOnce() + Send>;

/// A part of what a process prints.
enum Chunk {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// The end of one of the two pipes.
    End,
}

/// The outcome of a process.
pub(super) enum ProcessOutcome {
    /// By itself.
    Exited {
        /// Its exit status, or the signal that killed it.
        status: ExitStatus,
        /// Standard output.
        stdout: Vec<u8>,
        /// Standard error, or the beginning of it.
        stderr: Vec<u8>,
    },
    /// At its deadline.
    TimedOut,
    /// By the watch.
    Stopped,
    /// By printing more than [`MAX_OUTPUT`].
    TooMuchOutput,
}

impl Running {
    /// Starts a process that leads a group.
    pub(super) fn start(command: Command) -> io::Result<Self> {
        Self::start_with(command, &|task| thread::Builder::new().spawn(task).map(drop))
    }

    /// Starts a process whose output is read on threads that `spawn` starts.
    fn start_with(mut command: Command, spawn: &dyn Fn(ReadTask) -> io::Result<()>) -> io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (sender, chunks) = mpsc::sync_channel(16);
        let stdout = read_pipe(child.stdout.take(), sender.clone(), Chunk::Stdout);
        let stderr = read_pipe(child.stderr.take(), sender, Chunk::Stderr);
        if let Err(error) = spawn(stdout).and_then(|()| spawn(stderr)) {
            terminate(&mut child);
            return Err(error);
        }
        Ok(Self { child, chunks })
    }

    /// Waits for the end of the process.
    /// The process is ended at `deadline` or when `watch` returns false.
    pub(super) fn wait(
        mut self,
        deadline: Instant,
        mut watch: Option<&mut dyn FnMut() -> bool>,
    ) -> io::Result<ProcessOutcome> {
        let (mut stdout, mut stderr, mut pipes) = (Vec::new(), Vec::new(), 2);
        let (mut asked, mut silent_since) = (Instant::now(), None);
        loop {
            let now = Instant::now();
            if now >= deadline {
                terminate(&mut self.child);
                return Ok(ProcessOutcome::TimedOut);
            }
            if let Some(watch) = watch.as_deref_mut().filter(|_| now >= asked + POLL_INTERVAL) {
                if !watch() {
                    terminate(&mut self.child);
                    return Ok(ProcessOutcome::Stopped);
                }
                asked = Instant::now();
            }
            // It may close its pipes before it ends, and other processes may hold them after it has ended.
            let is_drained = pipes == 0 || silent_since.is_some_and(|since| now >= since + MAX_SILENCE);
            let is_over = is_drained && has_ended(&self.child);
            let pace = if pipes == 0 { SHORT_POLL_INTERVAL } else { POLL_INTERVAL };
            // On a busy machine, output may have come since then.
            let pace = if is_over { Duration::ZERO } else { pace };
            match self.chunks.recv_timeout(pace.min(deadline - now)) {
                Ok(Chunk::Stdout(chunk)) if stdout.len() + chunk.len() > MAX_OUTPUT => {
                    terminate(&mut self.child);
                    return Ok(ProcessOutcome::TooMuchOutput);
                }
                Ok(Chunk::Stdout(chunk)) => stdout.extend(chunk),
                Ok(Chunk::Stderr(chunk)) => stderr.extend(chunk.into_iter().take(MAX_STDERR - stderr.len())),
                Ok(Chunk::End) => pipes -= 1,
                Err(_) if is_over => break,
                Err(RecvTimeoutError::Disconnected) => thread::sleep(SHORT_POLL_INTERVAL),
                Err(RecvTimeoutError::Timeout) => {
                    if silent_since.is_none() && has_ended(&self.child) {
                        silent_since = Some(Instant::now());
                    }
                    continue;
                }
            }
            silent_since = None;
        }
        if pipes > 0 {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        Ok(ProcessOutcome::Exited { status: self.child.wait()?, stdout, stderr })
    }
}

/// Returns true if a process has ended.
/// The process is not reaped, so that its number and that of its group denote no other.
fn has_ended(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(None))
}

/// Ends the process's group, first by SIGTERM and then by SIGKILL.
fn terminate(child: &mut Child) {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let kill_at = Instant::now() + TERM_GRACE;
    while Instant::now() < kill_at && !has_ended(child) {
        thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Reads a pipe to its end, so that the process is never blocked from writing.
fn read_pipe(
    pipe: Option<impl Read + Send + 'static>,
    sender: SyncSender<Chunk>,
    chunk: fn(Vec<u8>) -> Chunk,
) -> ReadTask {
    Box::new(move || {
        let mut buffer = vec![0; CHUNK_SIZE];
        if let Some(mut pipe) = pipe {
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) if sender.send(chunk(buffer[..length].to_vec())).is_ok() => {}
                    // The receiver is gone.
                    Ok(_) => return,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        let _ = sender.send(Chunk::End);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn shell(script: &str) -> Running {
        let mut command = Command::new("sh");
        set_process_group(command.args(["-c", script]).stdin(Stdio::null()));
        Running::start(command).unwrap()
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    /// Returns true if a process runs; one that is not reaped does not.
    fn runs(process: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    /// Waits until killed processes are gone.
    fn assert_gone(processes: &str) {
        let deadline = in_seconds(5);
        while processes.split_whitespace().any(runs) {
            assert!(Instant::now() < deadline, "{processes} still run");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_process_returns_its_output_and_exit_status() {
        for (script, expected) in [
            ("echo out; echo words >&2", ((Some(0), None), "out\n", "words\n")),
            ("echo out; exit 3", ((Some(3), None), "out\n", "")),
            ("kill -9 $$", ((None, Some(9)), "", "")),
        ] {
            let outcome = shell(script).wait(in_seconds(60), None).unwrap();
            let ProcessOutcome::Exited { status, stdout, stderr } = outcome else { panic!("{script}") };
            assert_eq!(
                ((status.code(), status.signal()), stdout.as_slice(), stderr.as_slice()),
                (expected.0, expected.1.as_bytes(), expected.2.as_bytes())
            );
        }
    }

    #[test]
    fn at_the_deadline_all_processes_are_killed_even_if_they_ignore_sigterm() {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("processes");
        let script = format!(
            "trap '' TERM; (trap '' TERM; sleep 600; sleep 600) & echo $$ $! > '{}'; sleep 600; sleep 600",
            notes.display()
        );
        let begin = Instant::now();
        let outcome = shell(&script).wait(begin + Duration::from_secs(1), None).unwrap();
        assert!(matches!(outcome, ProcessOutcome::TimedOut));
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_gone(&std::fs::read_to_string(notes).unwrap());
    }

    /// A process without a thread to read its output is ended.
    ///
    /// At the limit of processes a thread cannot be started either. Formerly, that was a panic, and the
    /// process ran on.
    #[test]
    fn a_process_with_unreadable_output_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("process");
        let process = || std::fs::read_to_string(&notes).unwrap_or_default();
        let mut command = Command::new("sh");
        let script = format!("echo $$ > '{}'; sleep 600", notes.display());
        set_process_group(command.args(["-c", &script]).stdin(Stdio::null()));
        let refuse = |_| {
            while !process().ends_with('\n') {
                thread::sleep(Duration::from_millis(10));
            }
            Err(io::ErrorKind::WouldBlock.into())
        };
        let error = Running::start_with(command, &refuse).err().expect("there is no thread");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_gone(&process());
    }

    #[test]
    fn a_process_that_has_closed_its_output_is_still_waited_for() {
        let begin = Instant::now();
        let outcome = shell("exec >&- 2>&-; sleep 600").wait(in_seconds(1), None).unwrap();
        assert!(matches!(outcome, ProcessOutcome::TimedOut) && begin.elapsed() < Duration::from_secs(30));
        let outcome = shell("exec >&- 2>&-; sleep 0.2; exit 3").wait(in_seconds(60), None).unwrap();
        assert!(matches!(outcome, ProcessOutcome::Exited { status, .. } if status.code() == Some(3)));
    }

    /// As the connection that an `ssh` with `ControlPersist` leaves behind does.
    #[test]
    fn a_background_child_that_holds_the_output_open_is_not_waited_for() {
        let begin = Instant::now();
        let outcome = shell("echo out; sleep 600 & exit 0").wait(in_seconds(60), None).unwrap();
        let ProcessOutcome::Exited { status, stdout, .. } = outcome else { panic!("it ended by itself") };
        assert_eq!((status.code(), stdout.as_slice()), (Some(0), b"out\n".as_slice()));
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    }

    #[test]
    fn standard_error_beyond_the_limit_is_discarded() {
        let outcome = shell("head -c 3000000 /dev/zero >&2; echo done").wait(in_seconds(60), None).unwrap();
        let ProcessOutcome::Exited { status, stdout, stderr } = outcome else { panic!("it ended by itself") };
        assert_eq!(
            (status.code(), stdout.as_slice(), stderr.len()),
            (Some(0), b"done\n".as_slice(), MAX_STDERR)
        );
    }

    #[test]
    fn output_beyond_the_limit_ends_the_process() {
        let outcome = shell("cat /dev/zero").wait(in_seconds(60), None).unwrap();
        assert!(matches!(outcome, ProcessOutcome::TooMuchOutput));
    }

    #[test]
    fn a_watch_that_returns_false_ends_the_process() {
        for script in ["sleep 600", "while echo more; do sleep 0.01; done"] {
            let begin = Instant::now();
            let mut questions = 0;
            let mut watch = || {
                questions += 1;
                questions < 3
            };
            let outcome = shell(script).wait(in_seconds(60), Some(&mut watch)).unwrap();
            assert!(matches!(outcome, ProcessOutcome::Stopped), "{script}");
            assert!(begin.elapsed() < Duration::from_secs(30), "{script}: {:?}", begin.elapsed());
            assert_eq!(questions, 3, "{script}");
        }
    }
}
