//! Reasons for Jobs and CronJobs.

use super::super::state::Judge::{ArgoCd, Kstatus};
use super::super::state::Outcome::{Complete, Failed, InProgress};
use super::super::state::Row;
use super::reason::DifferenceReason;

pub(super) const REASONS: &[DifferenceReason] = &[
    DifferenceReason {
        name: "running Job",
        text: "A Job is installed when it is complete. kstatus calls it Current from its start on.",
        judges: &[Kstatus],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, _| is_unfinished_job(row) && !row.text("startTime").is_empty(),
    },
    DifferenceReason {
        name: "resumed Job",
        text: "A Job that runs again after a suspension is in progress. Argo CD calls it Healthy, because it takes the \
               condition `Suspended` for an end, also if it is `False`.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, _| {
            is_unfinished_job(row) && row.condition("Suspended").is_some_and(|(status, _)| status == "False")
        },
    },
    DifferenceReason {
        name: "failed run of a CronJob",
        text: "A CronJob is installed when its template has the image. Argo CD calls it Degraded after a failed run.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[Failed],
        holds: |row, _| {
            let (last, succeeded) = (row.text("lastScheduleTime"), row.text("lastSuccessfulTime"));
            let is_running = row.object["status"]["active"].is_array();
            is_running_cron_job(row) && !is_running && !succeeded.is_empty() && succeeded < last
        },
    },
    DifferenceReason {
        name: "CronJob without a run",
        text: "A CronJob is installed when its template has the image. Argo CD waits for its first status.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| is_running_cron_job(row) && row.object["status"].is_null(),
    },
];

fn is_unfinished_job(row: &Row) -> bool {
    row.kind() == "Job" && row.condition("Complete").is_none() && row.condition("Failed").is_none()
}

fn is_running_cron_job(row: &Row) -> bool {
    row.kind() == "CronJob" && row.object["spec"]["suspend"] != true
}
