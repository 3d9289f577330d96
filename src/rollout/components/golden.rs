//! Golden cases: `testdata/rollout/components/CASE/`.
//!
//! `policies.yaml` has the policies and the places of their automations, `objects.yaml` the objects of Tagboat's own
//! cluster, and `objects-NAME.yaml` those of another cluster. `expected.yaml` has the components of each policy.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    use tagboat_api::deployment_status::ComponentStatus;

    use super::super::testing::Scene;

    fn cases() -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/rollout/components");
        let mut cases: Vec<PathBuf> =
            fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
        cases.sort();
        cases
    }

    fn scene(case: &Path) -> Scene {
        let mut scene = Scene::new(&fs::read_to_string(case.join("policies.yaml")).unwrap());
        let mut files: Vec<PathBuf> =
            fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let objects = fs::read_to_string(&file).unwrap();
            if name == "objects" {
                scene.insert(&objects);
            } else if let Some(cluster) = name.strip_prefix("objects-") {
                scene.add_cluster(Some(cluster));
                scene.insert_into(scene.clusters.len() - 1, &objects);
            }
        }
        scene
    }

    /// `TAGBOAT_REGENERATE=1` writes the expected components.
    #[test]
    fn each_golden_case_has_its_components() {
        let cases = cases();
        assert!(cases.len() >= 8, "{cases:?}");
        for case in cases {
            let mut scene = scene(&case);
            let policies = scene.policies();
            let found: BTreeMap<String, Vec<ComponentStatus>> =
                policies.into_iter().map(|policy| (policy.clone(), scene.report(&policy))).collect();
            let text = serde_saphyr::to_string(&found).unwrap();
            let file = case.join("expected.yaml");
            if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
                fs::write(&file, &text).unwrap();
            }
            assert_eq!(fs::read_to_string(&file).unwrap_or_default(), text, "{}", case.display());

            // The same observation changes nothing.
            for policy in scene.policies() {
                assert_eq!(scene.report(&policy), found[&policy], "{} {policy}", case.display());
            }
        }
    }
}
