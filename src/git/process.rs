//! A process with a deadline: it and all that it started end together.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// More output than this is no listing that we asked for.
const OUTPUT: u64 = 256 * 1024 * 1024;

/// What is kept of standard error.
const WORDS: u64 = 64 * 1024;

/// How often a watch is asked.
const PACE: Duration = Duration::from_millis(100);

/// How long a process may take to tidy up when it is told to end.
const GRACE: Duration = Duration::from_secs(2);

/// Makes the process the head of a group of its own, so that one signal reaches it and all that it starts.
pub(super) fn lead_a_group(command: &mut Command) {
    command.process_group(0);
}

/// A process that runs.
pub(super) struct Running {
    child: Child,
    output: Receiver<Vec<u8>>,
    words: Receiver<Vec<u8>>,
}

/// How a process ended.
pub(super) enum Ended {
    /// By itself.
    Itself {
        /// Whether its status is 0.
        is_success: bool,
        /// Standard output.
        output: Vec<u8>,
        /// Standard error.
        words: Vec<u8>,
    },
    /// At its deadline.
    TimedOut,
    /// Because the watch said so.
    Stopped,
}

impl Running {
    /// Starts a process that leads a group.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let output = collect(child.stdout.take(), OUTPUT);
        let words = collect(child.stderr.take(), WORDS);
        Ok(Self { child, output, words })
    }

    /// Waits for the end of the process, and ends it at `deadline` or when `watch` says no.
    pub(super) fn wait(
        mut self,
        deadline: Instant,
        mut watch: Option<&mut dyn FnMut() -> bool>,
    ) -> io::Result<Ended> {
        // Both pipes close when the process and all its children that could still work are gone.
        let mut received = [None, None];
        for (channel, place) in [&self.output, &self.words].into_iter().zip(&mut received) {
            loop {
                let now = Instant::now();
                if now >= deadline {
                    end(&mut self.child);
                    return Ok(Ended::TimedOut);
                }
                let left = deadline - now;
                let patience = if watch.is_some() { left.min(PACE) } else { left };
                match channel.recv_timeout(patience) {
                    Ok(bytes) => break *place = Some(bytes),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if let Some(watch) = watch.as_deref_mut()
                    && !watch()
                {
                    end(&mut self.child);
                    return Ok(Ended::Stopped);
                }
            }
        }
        let is_success = self.child.wait()?.success();
        let [output, words] = received.map(Option::unwrap_or_default);
        Ok(Ended::Itself { is_success, output, words })
    }
}

/// Ends the process's group, first with a word and then by force.
fn end(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let patience = Instant::now() + GRACE;
    // The head of the group is left unburied until the group is gone, so that its number means no other.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while Instant::now() < patience && matches!(waitid(WaitId::Pid(group), options), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Reads a pipe to its end, and keeps the first `limit` bytes: a process that cannot write on would hang.
fn collect(pipe: Option<impl Read + Send + 'static>, limit: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let _ = (&mut pipe).take(limit).read_to_end(&mut kept);
            let _ = io::copy(&mut pipe, &mut io::sink());
            let _ = sender.send(kept);
        });
    }
    receiver
}
