//! Worlds of two machines and a pool, and their exploration.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::*;

/// A pool, two machines by their numbers, and the number of interferences left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    machines: [u32; 2],
    pool: PoolState,
    budget: u8,
}

/// A state of a machine, with its next states.
struct Entry {
    machine: Machine,
    /// The node by its place, because the name decides about the order.
    nodes: [Node; 2],
    progress: Option<Arc<[u32]>>,
    interference: Option<Arc<[u32]>>,
    calm: Option<u32>,
}

/// All states of machines that were found.
#[derive(Default)]
struct Model {
    entries: Vec<Entry>,
    numbers: HashMap<Machine, u32>,
    pools: HashMap<PoolState, Arc<Pool>>,
    controller: HashMap<(u32, PoolState, bool), Option<u32>>,
}

impl Model {
    fn number(&mut self, machine: Machine) -> u32 {
        if let Some(number) = self.numbers.get(&machine) {
            return *number;
        }
        machine.check_safety();
        let number = u32::try_from(self.entries.len()).unwrap();
        let nodes = ["a", "b"].map(|name| machine.node(name));
        self.numbers.insert(machine.clone(), number);
        self.entries.push(Entry { machine, nodes, progress: None, interference: None, calm: None });
        number
    }

    fn numbers(&mut self, machines: Vec<Machine>) -> Arc<[u32]> {
        machines.into_iter().map(|machine| self.number(machine)).collect()
    }

    fn machine(&self, number: u32) -> &Machine {
        &self.entries[number as usize].machine
    }

    fn progress_of(&mut self, number: u32) -> Arc<[u32]> {
        if self.entries[number as usize].progress.is_none() {
            let found = self.machine(number).progress();
            self.entries[number as usize].progress = Some(self.numbers(found));
        }
        self.entries[number as usize].progress.clone().unwrap()
    }

    fn interference_of(&mut self, number: u32) -> Arc<[u32]> {
        if self.entries[number as usize].interference.is_none() {
            let found = self.machine(number).interference();
            self.entries[number as usize].interference = Some(self.numbers(found));
        }
        self.entries[number as usize].interference.clone().unwrap()
    }

    /// Returns the machine after the last interference.
    fn calm(&mut self, number: u32) -> u32 {
        if self.entries[number as usize].calm.is_none() {
            let calm = self.machine(number).with(|next| (next.is_paused, next.fails) = (false, false));
            self.entries[number as usize].calm = Some(self.number(calm));
        }
        self.entries[number as usize].calm.unwrap()
    }

    fn pool(&mut self, state: PoolState) -> Arc<Pool> {
        self.pools.entry(state).or_insert_with(|| Arc::new(state.pool())).clone()
    }

    fn step(&mut self, number: u32, pool: PoolState, has_grant: bool) -> Option<u32> {
        if let Some(known) = self.controller.get(&(number, pool, has_grant)) {
            return *known;
        }
        let settings = self.pool(pool);
        let next = self.machine(number).controller(&settings, has_grant);
        let next = next.map(|machine| self.number(machine));
        self.controller.insert((number, pool, has_grant), next);
        next
    }

    fn has_grant(&mut self, world: World, at: usize) -> bool {
        let pool = self.pool(world.pool);
        let members = (0..2).filter(|at| self.machine(world.machines[*at]).is_member);
        let nodes: Vec<&Node> =
            members.map(|at| &self.entries[world.machines[at] as usize].nodes[at]).collect();
        let granted = grants(&nodes, &pool, false, now());
        granted.iter().any(|node| node.name == ["a", "b"][at])
    }

    /// The step of the controller for a node.
    fn controller(&mut self, world: World, at: usize) -> Option<u32> {
        let number = world.machines[at];
        let [without, with] = [false, true].map(|has_grant| self.step(number, world.pool, has_grant));
        if without != with && self.has_grant(world, at) { with } else { without }
    }

    /// The worlds to which a rollout proceeds.
    fn progress(&mut self, world: World) -> Vec<World> {
        let mut found = Vec::new();
        for at in 0..2 {
            let next = self.controller(world, at);
            let others = self.progress_of(world.machines[at]);
            found.extend(next.iter().chain(others.iter()).map(|number| world.with(at, *number)));
        }
        found
    }

    /// The worlds to which users and machines lead that interfere.
    fn interference(&mut self, world: World) -> Vec<World> {
        let Some(budget) = world.budget.checked_sub(1) else { return Vec::new() };
        let world = World { budget, ..world };
        let mut found = Vec::new();
        for at in 0..2 {
            let others = self.interference_of(world.machines[at]);
            found.extend(others.iter().map(|number| world.with(at, *number)));
        }
        let PoolState { target, is_paused, is_closed } = world.pool;
        let mut pools = vec![
            PoolState { is_paused: !is_paused, ..world.pool },
            PoolState { is_closed: !is_closed, ..world.pool },
        ];
        let others = IMAGES.into_iter().filter(|image| *image != target);
        pools.extend(others.map(|target| PoolState { target, ..world.pool }));
        found.extend(pools.into_iter().map(|pool| World { pool, ..world }));
        found
    }

    fn check_safety(&self, world: World) {
        let machines = world.machines.iter().map(|number| self.machine(*number));
        let in_slots = machines.filter(|machine| machine.is_member && machine.stage.holds_slot()).count();
        assert!(in_slots <= 1, "more nodes in slots than allowed: {}", self.text(world));
    }

    fn text(&self, world: World) -> String {
        let [first, second] = world.machines.map(|number| self.machine(number));
        format!("{:?} of {first:#?} and {second:#?}", world.pool)
    }

    /// Verifies that all orders of progress end with updated nodes, without more interference.
    ///
    /// A host that came back without the wanted image needs another one, and the next node waits for its slot.
    fn check_liveness(&mut self, world: World, live: &mut HashMap<World, bool>) {
        let machines = world.machines.map(|number| self.calm(number));
        let pool = PoolState { is_paused: false, is_closed: false, ..world.pool };
        let first = World { machines, pool, budget: 0 };
        // A world is `false` while the worlds after it are visited.
        let mut path = vec![(first, None::<std::vec::IntoIter<World>>)];
        while let Some((world, next)) = path.last_mut() {
            let world = *world;
            let next = match next {
                Some(next) => next,
                None => match live.get(&world) {
                    Some(true) => {
                        path.pop();
                        continue;
                    }
                    Some(false) => panic!("no end: {}", self.text(world)),
                    None => {
                        live.insert(world, false);
                        next.insert(self.calm_progress(world).into_iter())
                    }
                },
            };
            match next.next() {
                Some(after) => path.push((after, None)),
                None => {
                    live.insert(world, true);
                    path.pop();
                }
            }
        }
    }

    /// The worlds that follow without interference.
    fn calm_progress(&mut self, world: World) -> Vec<World> {
        let found = self.progress(world);
        if !found.is_empty() {
            return found;
        }
        let machines = world.machines.map(|number| self.machine(number));
        if world.pool.target != LAST_IMAGE && machines.iter().any(|machine| machine.has_failed()) {
            return vec![World { pool: PoolState { target: LAST_IMAGE, ..world.pool }, ..world }];
        }
        let is_over = machines.iter().all(|machine| machine.is_at_rest(world.pool.target));
        assert!(is_over, "stuck: {}", self.text(world));
        Vec::new()
    }
}

impl World {
    fn with(self, at: usize, machine: u32) -> Self {
        let mut next = self;
        next.machines[at] = machine;
        next
    }
}

/// Visits all worlds to which a number of interferences leads, and returns their number.
fn explore(budget: u8) -> usize {
    let mut model = Model::default();
    let machine = model.number(Machine::new());
    let pool = PoolState { target: 2, is_paused: false, is_closed: false };
    let first = World { machines: [machine; 2], pool, budget };
    let (mut seen, mut next) = (HashSet::from([first]), VecDeque::from([first]));
    let mut live = HashMap::new();
    while let Some(world) = next.pop_front() {
        model.check_safety(world);
        model.check_liveness(world, &mut live);
        for found in model.progress(world).into_iter().chain(model.interference(world)) {
            if seen.insert(found) {
                next.push_back(found);
            }
        }
    }
    seen.len()
}

/// For example, a crash boots another image, after which the one before is wanted again.
#[test]
fn three_interferences_of_any_kind_leave_the_rollout_safe_and_alive() {
    let count = explore(3);
    assert!((1_000_000..2_000_000).contains(&count), "{count} worlds");
}
