//! `tagboat run` from a real registry to a real git server: a push there ends in a commit here.

mod cloud_identity;
mod concurrent_runs;
mod downgrades;
mod end_to_end;
mod image_overrides;
mod progress;
mod registry_failures;
mod scene;
mod selection;
mod state;
mod tag_store;
mod unpullable_images;
mod user_intent;
