//! Tests of `tagboat run` from a real registry to a real git server.
//! A push to the registry ends in a commit on the server.

mod cloud_identity;
mod concurrent_runs;
mod downgrades;
mod end_to_end;
mod image_overrides;
mod progress;
mod registry_failures;
mod release_groups;
mod scene;
mod selection;
mod state;
mod tag_store;
mod unpullable_images;
mod user_intent;
