//! The changes after which a branch is rebuilt, or kept.

use serde_json::json;

use super::{
    Automation, BRANCH, actions, beyond, commit, content, fleet, lose_state, pushes, run, tip, write,
};
use crate::support::content::file;
use crate::support::fleet::tag_line;

#[test]
fn a_branch_is_rebuilt_when_needed_or_always() {
    let elsewhere = || file("docs/readme.md", "words\n");
    let beside = || file("app.yaml", format!("# a note\n{}", tag_line("4.0.6")));
    for (refresh, change, expected) in [
        ("when-needed", elsewhere(), "kept"),
        ("when-needed", beside(), "rebuilt"),
        ("always", elsewhere(), "rebuilt"),
    ] {
        for is_state_lost in [false, true] {
            let fleet = fleet(json!({"pull-request-refresh": refresh}));
            run(&fleet);
            let (before, old_base, count) = (tip(&fleet, BRANCH), fleet.tip(), pushes(&fleet));
            commit(&fleet, "main", std::slice::from_ref(&change));
            if is_state_lost {
                lose_state(&fleet);
            }
            let words = format!("{refresh} {expected} {is_state_lost}");
            assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: {expected}")], "{words}");
            let is_kept = expected == "kept";
            assert_eq!(
                (tip(&fleet, BRANCH) == before, pushes(&fleet) == count),
                (is_kept, is_kept),
                "{words}"
            );
            let own = beyond(&fleet, BRANCH);
            let parent = if is_kept { old_base } else { fleet.tip() };
            assert_eq!((own.len(), &own[0].parents), (1, &vec![parent]), "{words}");
            assert!(content(&fleet, BRANCH, "app.yaml").ends_with(&tag_line("5.0.3")), "{words}");
        }
    }
}

/// A merge of the branch would have brought the commit back.
#[test]
fn a_branch_on_a_commit_that_the_base_has_lost_is_rebuilt() {
    let fleet = fleet(json!({}));
    let before = fleet.tip();
    commit(&fleet, "main", &[file("docs/bad.md", "words\n")]);
    run(&fleet);
    // The base moves on, and the branch stays.
    commit(&fleet, "main", &[file("docs/bad.md", "more words\n")]);
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: kept")]);
    fleet.repository.move_branch("main", &before);
    commit(&fleet, "main", &[file("docs/good.md", "words\n")]);
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: rebuilt")]);
    let own = beyond(&fleet, BRANCH);
    assert_eq!((own.len(), &own[0].parents), (1, &vec![fleet.tip()]));
}

#[test]
fn a_new_image_makes_the_branch_anew() {
    let fleet = fleet(json!({}));
    run(&fleet);
    commit(&fleet, "main", &[file("docs/readme.md", "words\n")]);
    write(&fleet, &[Automation::new(json!({}))], "5.0.4");
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: rebuilt")]);
    let own = beyond(&fleet, BRANCH);
    assert_eq!((own.len(), &own[0].parents), (1, &vec![fleet.tip()]));
    assert_eq!(content(&fleet, BRANCH, "app.yaml"), tag_line("5.0.4"));
    assert_eq!(fleet.status("fleet")["lastPushCommit"], own[0].id.as_str());
}

#[test]
fn lost_state_changes_nothing_at_the_remote() {
    let fleet = fleet(json!({}));
    run(&fleet);
    for changes in [None, Some(file("docs/readme.md", "words\n"))] {
        if let Some(change) = changes {
            commit(&fleet, "main", &[change]);
        }
        let (before, count) = (tip(&fleet, BRANCH), pushes(&fleet));
        lose_state(&fleet);
        assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: kept")]);
        assert_eq!((tip(&fleet, BRANCH), pushes(&fleet)), (before, count));
    }
    // A branch that is deleted while its values are wanted comes back.
    fleet.repository.delete_branch(BRANCH);
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: created")]);
}

/// A person's push of the branch between the listing and ours.
#[test]
fn a_lost_race_for_a_branch_loses_no_commit_of_others() {
    let fleet = fleet(json!({}));
    run(&fleet);
    write(&fleet, &[Automation::new(json!({}))], "5.0.4");
    let (repository, has_pushed) = (fleet.repository.clone(), std::sync::atomic::AtomicBool::new(false));
    fleet.host.meanwhile(crate::support::git_host::Operation::ListForPush, move || {
        if !has_pushed.swap(true, std::sync::atomic::Ordering::SeqCst) {
            repository.commit(BRANCH, "Review", &[file("app.yaml", tag_line("4.9.9"))]);
        }
    });
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: left")]);
    assert_eq!(content(&fleet, BRANCH, "app.yaml"), tag_line("4.9.9"));
}
