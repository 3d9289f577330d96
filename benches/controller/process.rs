//! Runs the program and measures the CPU time and memory of its process tree.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::scene::Scene;

/// The interval between two samples of the memory.
const LOOK: Duration = Duration::from_millis(20);

/// The settings of the allocator in the container image.
const ALLOCATOR: [(&str, &str); 4] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "32768"),
    ("MALLOC_TRIM_THRESHOLD_", "65536"),
    ("MALLOC_TOP_PAD_", "0"),
];

/// A running program.
pub(crate) struct Measured {
    child: Child,
    peak: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    watching: Option<JoinHandle<()>>,
}

impl Measured {
    pub(crate) async fn start(program: &Path, scene: &Scene) -> Self {
        Self::start_with(program, scene, &[]).await
    }

    /// Starts the program with further arguments.
    pub(crate) async fn start_with(program: &Path, scene: &Scene, arguments: &[&str]) -> Self {
        let token = scene.cluster.token_with_the_roles().await;
        let command = &mut Command::new(program);
        command
            .args(["controller", "--watch-all-namespaces=false", "--enable-leader-election"])
            .args(arguments)
            .env("KUBECONFIG", scene.cluster.kubeconfig(&token))
            .env("RUNTIME_NAMESPACE", scene.cluster.namespace());
        Self::spawn(command, scene)
    }

    /// Starts the program with the administrator's rights, on one namespace.
    pub(crate) async fn start_on(program: &Path, scene: &Scene, namespace: &str, arguments: &[&str]) -> Self {
        let command = &mut Command::new(program);
        command
            .args(["controller", "--watch-all-namespaces=false"])
            .args(arguments)
            .env("KUBECONFIG", scene.cluster.administrators_kubeconfig())
            .env("RUNTIME_NAMESPACE", namespace);
        Self::spawn(command, scene)
    }

    /// Starts the program with the administrator's rights, on all namespaces, with further arguments.
    pub(crate) fn start_everywhere(program: &Path, scene: &Scene, arguments: &[&str]) -> Self {
        let command = &mut Command::new(program);
        command
            .args(["controller", "--enable-leader-election"])
            .args(arguments)
            .env("KUBECONFIG", scene.cluster.administrators_kubeconfig())
            .env("RUNTIME_NAMESPACE", scene.cluster.namespace());
        Self::spawn(command, scene)
    }

    /// Starts a process of this benchmark that does nothing but watch Deployments.
    pub(crate) fn start_bare_watch(scene: &Scene) -> Self {
        let command = &mut Command::new(std::env::current_exe().unwrap());
        command
            .args(["bare-watch", scene.cluster.namespace()])
            .env("KUBECONFIG", scene.cluster.administrators_kubeconfig());
        Self::spawn(command, scene)
    }

    fn spawn(command: &mut Command, scene: &Scene) -> Self {
        let temporary = scene.root().join("temporary");
        fs::create_dir_all(&temporary).unwrap();
        let is_watch = command.get_args().next().is_some_and(|argument| argument == "bare-watch");
        if !is_watch {
            command.args([
                "--allow-local-addresses",
                "--health-addr=0",
                "--metrics-addr=0",
                "--log-level=error",
            ]);
        }
        let child = command
            .env("TMPDIR", temporary)
            .envs(ALLOCATOR)
            .env("NO_PROXY", "127.0.0.1")
            .stdout(Stdio::null())
            .stderr(fs::File::create(scene.root().join("log")).unwrap())
            .spawn()
            .unwrap();
        let (peak, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let watching = spawn({
            let (id, peak, is_over) = (child.id(), peak.clone(), is_over.clone());
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    peak.fetch_max(memory(id), Ordering::Relaxed);
                    sleep(LOOK);
                }
            }
        });
        Self { child, peak, is_over, watching: Some(watching) }
    }

    /// Returns the CPU seconds of the program and of all its ended children.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The second field is a name in brackets, which may hold any characters.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11..15].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    pub(crate) fn forget_peak(&self) {
        self.peak.store(0, Ordering::Relaxed);
    }

    pub(crate) fn peak_megabytes(&self) -> f64 {
        self.peak.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Kills the process.
    pub(crate) fn kill(self) {
        drop(self);
    }

    pub(crate) fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.watching.take().map(JoinHandle::join);
    }
}

/// A measurement, from its start on.
pub(crate) struct Row<'a> {
    process: &'a Measured,
    begin: Instant,
    cpu: f64,
}

impl<'a> Row<'a> {
    pub(crate) fn new(process: &'a Measured) -> Self {
        process.forget_peak();
        Self { process, begin: Instant::now(), cpu: process.cpu_seconds() }
    }

    pub(crate) fn print(self, what: &str) {
        let Row { process, begin, cpu } = self;
        let (seconds, cpu) = (begin.elapsed().as_secs_f64(), process.cpu_seconds() - cpu);
        println!("| {what} | {seconds:.1} | {cpu:.2} | {:.0} |", process.peak_megabytes());
    }
}

/// Returns the memory of a process and its descendants, in bytes.
///
/// A shared page counts proportionally. A child that still runs our program is about to become another one: until then
/// it uses the memory of its parent (`vfork`), which would count twice.
fn memory(id: u32) -> u64 {
    let program = |id: u32| fs::read_link(format!("/proc/{id}/exe")).ok();
    let ours = program(id);
    memory_of_tree(id, &|child| program(child) != ours)
}

fn memory_of_tree(id: u32, counts: &dyn Fn(u32) -> bool) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let below: u64 = children
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .filter(|child| counts(*child))
        .map(|child| memory_of_tree(child, counts))
        .sum();
    own_memory(id) + below
}

/// Returns the memory of one process in bytes, 0 if it has ended.
fn own_memory(id: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let share = rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"));
    share.and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) * 1024
}
