//! The refspec of one automation among several: a further push beside that of the branch.

use serde_json::json;

use super::scene::{Kind, Scene, condition};
use crate::support::content::{file, removed};

/// Content that does not compress.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(&mut next).take(size).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refspec_whose_history_is_too_large_for_the_mirror_fails_alone() {
    let scene = Scene::new(&["app", "copying"]).await;
    let copied = scene.repository.id("main").unwrap();
    for number in 0..4 {
        scene.repository.commit("main", "Large", &[file("large.bin", noise(number, 1 << 20))]);
    }
    scene.repository.commit("main", "Small again", &[removed("large.bin")]);
    scene.repository.move_branch("copy", &copied);
    let refspec = json!({"spec": {"git": {"push": {"refspec": "HEAD:refs/heads/copy"}}}});
    scene.patch(Kind::Automation, "copying", &refspec).await;
    let mut builder = scene.controller();
    builder.options.run.login.mirror_size = 2 << 20;
    let controller = builder.start();
    tokio::join!(scene.ready("app"), scene.ready("copying"));
    tokio::join!(scene.choose("app", "2.0.0"), scene.choose("copying", "2.0.0"));
    scene.lands("app", "2.0.0").await;
    let status = scene.not_ready("copying", "GitOperationFailed").await;
    let words = condition(&status, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(words.contains("refs/heads/copy was refused: a check for commits that"), "{words}");
    assert!(words.contains("raise --mirror-max-size, or put + in front of the refspec"), "{words}");
    assert!(words.contains("branch 'main', but not refspecs 'HEAD:refs/heads/copy': "), "{words}");
    scene.ready("app").await;
    scene.lands("copying", "2.0.0").await;
    let pushed = status["lastPushCommit"].as_str().unwrap();
    assert!(scene.commits().iter().any(|commit| commit.id == pushed), "{status:#}");
    let event = format!("pushed commit '{}' to branch 'main', but not refspecs ", &pushed[..7]);
    let events = scene.events("copying").await;
    assert_eq!(events.iter().filter(|one| one.contains(&event)).count(), 1, "{events:#?}");
    assert_eq!(scene.repository.id("copy"), Some(copied));
    assert_eq!(scene.commits().len(), 2);
    // The refspec stays pending until it can be pushed.
    let forced = json!({"spec": {"git": {"push": {"refspec": "+HEAD:refs/heads/copy"}}}});
    scene.patch(Kind::Automation, "copying", &forced).await;
    scene.ready("copying").await;
    controller.end().await;
    scene.repository.assert_sound();
}
