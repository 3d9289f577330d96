//! The steps of a deployment: chosen, committed, applied and running.
//!
//! A component that is not done is at one step, and so is an error of the deployment. The current step is the earliest
//! one of them. The steps before it are done. Each step from it on shows the error that is at it, or else the worst
//! component, with its cause and its time; a step without one waits.
//!
//! While a cluster does not answer, it is not known whether its objects have the image. So this error is at the step
//! applied, and no step from there on is done.
//!
//! Only the push has a time of its own. A step that is done and has none was done by the time of the next one, which
//! cannot be done before it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::{BlockReason, ComponentStatus, DeploymentStatusStatus, Report, State};

/// A step of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepName {
    /// The policy has selected an image.
    Chosen,
    /// The image is in git.
    Committed,
    /// The objects have the image.
    Applied,
    /// The rollout of the objects is complete.
    Running,
}

/// The progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepProgress {
    /// It is done.
    Done,
    /// It is in progress.
    InProgress,
    /// It cannot begin before something else happens.
    Blocked,
    /// It failed.
    Failed,
    /// It waits for the step before it.
    Waiting,
}

/// The time of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepTime {
    /// It was done at this time.
    At(Time),
    /// It was done at this time or before.
    By(Time),
    /// It has its progress since this time.
    Since(Time),
}

/// A step with its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The step.
    pub name: StepName,
    /// Its progress.
    pub progress: StepProgress,
    /// Its time, unless it waits.
    pub time: Option<StepTime>,
    /// The result, or what blocks it; may be empty.
    pub detail: String,
}

/// The state of a step that is not done.
#[derive(Debug, Clone, Copy)]
struct Obstacle<'r> {
    step: StepName,
    progress: StepProgress,
    /// The component that is at the step; none if the deployment as a whole is.
    component: Option<&'r ComponentStatus>,
}

/// Returns the steps of a deployment in their order.
#[must_use]
pub fn steps(status: &DeploymentStatusStatus) -> [Step; 4] {
    let report = &status.report;
    let current = current(report);
    [StepName::Chosen, StepName::Committed, StepName::Applied, StepName::Running].map(|name| match current {
        Some(current) if current.step == name => current.shown(report),
        Some(current) if current.step < name => {
            match obstacles(report).find(|obstacle| obstacle.step == name) {
                Some(obstacle) => obstacle.shown(report),
                None => Step { name, progress: StepProgress::Waiting, time: None, detail: String::new() },
            }
        }
        _ => {
            let (time, detail) = (Some(done_at(status, name, current.as_ref())), result(report, name));
            Step { name, progress: StepProgress::Done, time, detail }
        }
    })
}

/// Returns the steps of a deployment that is not shown as stored, as during outages.
///
/// A step that is still done keeps its time, because the outage has no part in it.
#[must_use]
pub fn shown_steps(stored: &DeploymentStatusStatus, shown: &DeploymentStatusStatus) -> [Step; 4] {
    let mut shown = steps(shown);
    for (step, before) in shown.iter_mut().zip(steps(stored)) {
        if step.progress == StepProgress::Done && before.progress == StepProgress::Done {
            step.time = before.time;
        }
    }
    shown
}

/// Returns the first step that is not done; none if all are done.
fn current(report: &Report) -> Option<Obstacle<'_>> {
    let whole = |step, progress| Some(Obstacle { step, progress, component: None });
    if report.state == State::Installed {
        return None;
    }
    obstacles(report).min_by_key(|obstacle| obstacle.step).or_else(|| match report.reason {
        Some(reason) => whole(of_reason(reason), StepProgress::Blocked),
        None if report.target.is_none() => whole(StepName::Chosen, StepProgress::Blocked),
        None => whole(StepName::Applied, StepProgress::InProgress),
    })
}

/// Returns the obstacles: the error, and then the components, the worst one first.
fn obstacles(report: &Report) -> impl Iterator<Item = Obstacle<'_>> {
    let error = report.error.iter().map(|error| Obstacle {
        step: of_code(&error.code),
        progress: StepProgress::Failed,
        component: None,
    });
    error.chain(report.components.iter().filter_map(|component| {
        let (step, progress) = of_component(component)?;
        Some(Obstacle { step, progress, component: Some(component) })
    }))
}

/// Returns the step of an error of a deployment.
fn of_code(code: &str) -> StepName {
    match code {
        "PolicyNotReady" => StepName::Chosen,
        "HostUnavailable" => StepName::Applied,
        _ => StepName::Committed,
    }
}

/// Returns the step of a component that is not done.
fn of_component(component: &ComponentStatus) -> Option<(StepName, StepProgress)> {
    match component.state {
        State::Installed | State::Removed => None,
        State::Installing | State::Removing => Some((StepName::Running, StepProgress::InProgress)),
        State::Pending => Some(match component.reason {
            Some(reason) => (of_reason(reason), StepProgress::Blocked),
            None => (StepName::Applied, StepProgress::InProgress),
        }),
        State::Failed => {
            let source = component.error.as_ref().map(|error| &error.source);
            let is_of_applier = component.applier.is_some() && component.applier.as_ref() == source;
            let step = if is_of_applier { StepName::Applied } else { StepName::Running };
            Some((step, StepProgress::Failed))
        }
    }
}

fn of_reason(reason: BlockReason) -> StepName {
    match reason {
        BlockReason::NotChosen => StepName::Chosen,
        BlockReason::NotCommitted | BlockReason::AwaitingMerge => StepName::Committed,
        BlockReason::NotApplied | BlockReason::NotFound => StepName::Applied,
    }
}

impl Obstacle<'_> {
    fn shown(&self, report: &Report) -> Step {
        let since = self.component.map_or(&report.since, |component| &component.since);
        Step {
            name: self.step,
            progress: self.progress,
            time: Some(StepTime::Since(since.clone())),
            detail: self.detail(report),
        }
    }

    /// Returns what blocks the step, or its progress.
    fn detail(&self, report: &Report) -> String {
        let (error, message, reason) = match self.component {
            Some(component) => (&component.error, &component.message, component.reason),
            None => (&report.error, &report.message, report.reason),
        };
        let error = error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
        let message = error.or_else(|| message.clone());
        // The message of a deployment names the component that it is about.
        let message = match (self.component, message) {
            (Some(component), Some(message)) => Some(format!("{}: {message}", component.name)),
            (Some(component), None) if reason.is_some() => Some(component.name.clone()),
            (_, message) => message,
        };
        match (message, reason.map(advice)) {
            (Some(message), Some(advice)) if self.progress == StepProgress::Blocked => {
                format!("{advice} ({message})")
            }
            (None, Some(advice)) => advice.to_owned(),
            (Some(message), _) => message,
            (None, None) => match self.step {
                StepName::Running => pods(report),
                StepName::Chosen => advice(BlockReason::NotChosen).to_owned(),
                StepName::Committed | StepName::Applied => objects(report),
            },
        }
    }
}

/// Returns the time of a step that is done.
fn done_at(status: &DeploymentStatusStatus, step: StepName, current: Option<&Obstacle<'_>>) -> StepTime {
    let report = &status.report;
    let pushed = report.commit.as_ref().map(|commit| commit.time.clone());
    let applied = || match current {
        Some(current) if current.step <= StepName::Applied => None,
        _ => report.components.iter().filter_map(had_image_by).max(),
    };
    // The status with the target, or with its revision, was written at this time or before.
    let written = || status.time_stamp.clone();
    match (step, pushed) {
        (StepName::Committed, Some(pushed)) => StepTime::At(pushed),
        (StepName::Chosen, Some(pushed)) => StepTime::By(pushed),
        (StepName::Chosen | StepName::Committed | StepName::Applied, _) => {
            StepTime::By(applied().unwrap_or_else(written))
        }
        (StepName::Running, _) => StepTime::Since(report.since.clone()),
    }
}

/// Returns a time at which a component had its image.
///
/// It has an image before its rollout is in progress, has ended or has failed.
fn had_image_by(component: &ComponentStatus) -> Option<Time> {
    match component.state {
        State::Installing | State::Installed | State::Failed => {
            component.last_deployed.iter().chain([&component.since]).min().cloned()
        }
        State::Pending | State::Removing | State::Removed => None,
    }
}

/// Returns the result of a step that is done.
fn result(report: &Report, step: StepName) -> String {
    match step {
        StepName::Chosen => report.target.as_ref().map(ToString::to_string).unwrap_or_default(),
        StepName::Committed => match &report.commit {
            Some(commit) => format!("{} on {} by {}", commit.short_id(), commit.branch, commit.automation),
            None => report.revision.clone().unwrap_or_default(),
        },
        StepName::Applied => {
            let revision = report.components.iter().find_map(|component| component.applied_revision.clone());
            revision.unwrap_or_else(|| objects(report))
        }
        StepName::Running => pods(report),
    }
}

/// Returns the meaning of a reason as a sentence.
fn advice(reason: BlockReason) -> &'static str {
    match reason {
        BlockReason::NotChosen => "The policy has selected no image.",
        BlockReason::NotCommitted => "The automation is suspended, failed, or has not run.",
        BlockReason::AwaitingMerge => "The commit is on another branch, which must be merged.",
        BlockReason::NotApplied => {
            "The applier is at another revision, is suspended, or does not synchronize automatically."
        }
        BlockReason::NotFound => "The object does not exist.",
    }
}

/// Returns the number of objects that have the image.
fn objects(report: &Report) -> String {
    let summary = &report.summary;
    format!("{} of {} objects", summary.total - summary.pending, summary.total)
}

/// Returns the number of pods that are ready.
fn pods(report: &Report) -> String {
    format!("{} pods are ready", report.progress)
}

#[cfg(test)]
mod tests;
