//! Waits of automations that share a branch.

use serde_json::{Value, json};

use super::shared::{line, of_two_files};
use super::{Automation, content};
use crate::support::manifests::policy_with_status;
use crate::support::program::run as run_program;
use crate::support::remote_fleet::{RemoteFleet, git_repository};
use crate::support::shifted_clock::ShiftedClock;

/// Writes automations `one` and `two` with the same annotations, and a policy for each.
fn write(fleet: &RemoteFleet, tag_of_one: &str, tag_of_two: &str, annotations: &Value) {
    let mut text = git_repository(&fleet.host.url("fleet.git"), "");
    for (name, tag) in [("one", tag_of_one), ("two", tag_of_two)] {
        let status = format!("latestRef: {{name: reg.io/{name}, tag: {tag:?}}}");
        text += &policy_with_status("default", name, &format!("app: {name}"), &status);
        let annotations = annotations.clone();
        let manifest = Automation { name, author: name, path: "./", annotations }.manifest();
        let mut object: Value = serde_json::from_str(manifest.trim_start_matches("---\n")).unwrap();
        object["spec"]["policySelector"] = json!({"matchLabels": {"app": name}});
        text += &format!("---\n{object}\n");
    }
    fleet.write_manifests(&text);
}

/// Each began its quiet period anew while the branch waited for the other.
#[test]
fn two_quiet_periods_that_overlap_on_a_shared_branch_end() {
    let fleet = of_two_files();
    let quiet = json!({"push-branch": "images", "quiet-period": "20m", "longest-wait": "30m"});
    let clock = ShiftedClock::new(fleet.root());
    let run = |seconds| {
        clock.set(seconds);
        let run = run_program(fleet.command().envs(clock.environment())).with_status(0);
        let all = run.json();
        [0, 1].map(|index| all["automations"][index].clone())
    };
    let outcomes = |reports: &[Value; 2]| reports.clone().map(|report| report["outcome"].clone());
    let (pushed, waiting, minute) = (json!("pushed"), json!("waiting"), 60);
    write(&fleet, "2.0.0", "2.0.0", &quiet);
    assert_eq!(outcomes(&run(0)), [pushed.clone(), pushed.clone()]);
    write(&fleet, "3.0.0", "2.0.0", &quiet);
    let begin = run(minute);
    assert_eq!(begin[0]["outcome"], waiting);
    let changes = |report: &Value| {
        let message = report["waiting"][0]["message"].as_str().unwrap();
        message.split_once("; changes from ").unwrap_or_else(|| panic!("{message}")).1.to_owned()
    };
    write(&fleet, "3.0.0", "3.0.0", &quiet);
    assert_eq!(outcomes(&run(11 * minute)), [waiting.clone(), waiting.clone()]);
    // The first one waits for the other only.
    for _ in 0..2 {
        let found = run(22 * minute);
        assert_eq!(outcomes(&found), [waiting.clone(), waiting.clone()]);
        let by = "automation default/two, which changes the same branch and waits";
        assert_eq!(found[0]["waiting"][0]["by"], by);
        assert_eq!(changes(&found[0]), changes(&begin[0]));
    }
    let end = run(32 * minute);
    assert_eq!(outcomes(&end), [pushed.clone(), pushed], "{end:#?}");
    for name in ["one", "two"] {
        assert_eq!(content(&fleet, "images", &format!("{name}.yaml")), line(name, "3.0.0"));
    }
    fleet.assert_sound();
}
