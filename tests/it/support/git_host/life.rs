//! Lifetime of a host: its connections and child processes end with it.

use std::collections::{HashMap, HashSet};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

#[derive(Default)]
pub(super) struct Life {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    is_over: bool,
    next: usize,
    connections: HashMap<usize, TcpStream>,
    /// Child processes that were not waited for yet, so that their ids are still valid.
    programs: HashSet<Pid>,
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Registers a connection by its number.
    pub(super) fn enter(&self, socket: &TcpStream) -> Option<usize> {
        let mut state = self.state();
        let socket = socket.try_clone().ok().filter(|_| !state.is_over)?;
        state.next += 1;
        let number = state.next;
        state.connections.insert(number, socket);
        Some(number)
    }

    /// Unregisters a connection, which closes when its owner drops it, and not earlier.
    pub(super) fn leave(&self, number: usize) {
        self.state().connections.remove(&number);
    }

    /// Starts a program in a process group of its own.
    pub(super) fn spawn(&self, command: &mut Command) -> Option<Child> {
        let mut state = self.state();
        if state.is_over {
            return None;
        }
        let child = command.process_group(0).spawn().expect("the program starts");
        state.programs.insert(Pid::from_child(&child));
        Some(child)
    }

    /// Waits for a program that has closed its output.
    pub(super) fn reap(&self, mut child: Child) {
        self.state().programs.remove(&Pid::from_child(&child));
        child.wait().expect("a child can be waited for");
    }

    /// Waits for the end of the host, or for a time.
    pub(super) fn sleep(&self, time: Duration) {
        let state = self.state();
        let _unused = self.ended.wait_timeout_while(state, time, |state| !state.is_over);
    }

    /// Ends everything.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        self.ended.notify_all();
        for program in state.programs.drain() {
            let _already_gone = kill_process_group(program, Signal::KILL);
        }
        for socket in state.connections.values() {
            let _already_closed = socket.shutdown(Shutdown::Both);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }
}
