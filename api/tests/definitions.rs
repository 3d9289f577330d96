//! The CustomResourceDefinitions around the schemas: names, versions, columns, rules, YAML.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use tagboat_api::crds;

const READY: &str = r#".status.conditions[?(@.type=="Ready")].status"#;
const MESSAGE: &str = r#".status.conditions[?(@.type=="Ready")].message"#;
const CREATED: &str = ".metadata.creationTimestamp";

/// Kind, group, plural, short names, categories.
type Names = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

fn crd(kind: &str) -> CustomResourceDefinition {
    crds::all().into_iter().find(|crd| crd.spec.names.kind == kind).expect("the kind is one of ours")
}

fn version<'a>(crd: &'a CustomResourceDefinition, name: &str) -> &'a CustomResourceDefinitionVersion {
    crd.spec.versions.iter().find(|version| version.name == name).expect("the version is there")
}

fn texts(values: Option<&Vec<String>>) -> Vec<&str> {
    values.into_iter().flatten().map(String::as_str).collect()
}

#[test]
fn definitions_are_in_a_fixed_order() {
    let kinds: Vec<String> = crds::all().into_iter().map(|crd| crd.spec.names.kind).collect();
    assert_eq!(kinds, ["ImagePolicy", "ImageRepository", "ImageUpdateAutomation", "GitRepository"]);
    let paths: Vec<String> = crds::files().into_iter().map(|file| file.path).collect();
    assert_eq!(
        paths,
        [
            "image.toolkit.fluxcd.io_imagepolicies.yaml",
            "image.toolkit.fluxcd.io_imagerepositories.yaml",
            "image.toolkit.fluxcd.io_imageupdateautomations.yaml",
            "source/source.toolkit.fluxcd.io_gitrepositories.yaml",
        ]
    );
}

#[test]
fn definitions_have_the_names_of_flux() {
    let image: &'static [&'static str] = &["all", "fluxcd", "fluxcd-images"];
    let source: &'static [&'static str] = &["all", "fluxcd", "fluxcd-sources"];
    let rows: [Names; 4] = [
        ("ImagePolicy", "image.toolkit.fluxcd.io", "imagepolicies", &["imgpol", "imagepol"], image),
        ("ImageRepository", "image.toolkit.fluxcd.io", "imagerepositories", &["imgrepo", "imagerepo"], image),
        (
            "ImageUpdateAutomation",
            "image.toolkit.fluxcd.io",
            "imageupdateautomations",
            &["iua", "imgupd", "imgauto"],
            image,
        ),
        ("GitRepository", "source.toolkit.fluxcd.io", "gitrepositories", &["gitrepo"], source),
    ];
    for (kind, group, plural, short_names, categories) in rows {
        let crd = crd(kind);
        let names = &crd.spec.names;
        assert_eq!(crd.metadata.name, Some(format!("{plural}.{group}")));
        assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), (group, "Namespaced"));
        assert_eq!(names.plural, plural);
        assert_eq!(names.singular, Some(kind.to_lowercase()));
        assert_eq!(names.list_kind, Some(format!("{kind}List")));
        assert_eq!(texts(names.short_names.as_ref()), short_names, "{kind}");
        assert_eq!(texts(names.categories.as_ref()), categories, "{kind}");
        let annotations = crd.metadata.annotations.as_ref().expect("every CRD has annotations");
        assert_eq!(annotations["kustomize.toolkit.fluxcd.io/substitute"], "disabled");
        assert_eq!(crd.spec.conversion, None, "{kind}");
    }
}

#[test]
fn definitions_serve_v1_and_v1beta2() {
    for crd in crds::all() {
        let kind = &crd.spec.names.kind;
        let names: Vec<&str> = crd.spec.versions.iter().map(|version| version.name.as_str()).collect();
        assert_eq!(names, ["v1", "v1beta2"], "{kind}");
        let (newer, older) = (version(&crd, "v1"), version(&crd, "v1beta2"));
        assert!(newer.served && newer.storage && newer.deprecated.is_none());
        assert!(older.served && !older.storage && older.deprecated == Some(true));
        assert_eq!(older.deprecation_warning, Some(format!("v1beta2 {kind} is deprecated, upgrade to v1")));
        for version in [newer, older] {
            let subresources = version.subresources.as_ref().expect("every version has subresources");
            assert!(subresources.status.is_some() && subresources.scale.is_none(), "{kind}");
        }
        assert_eq!(newer.additional_printer_columns, older.additional_printer_columns, "{kind}");
    }
}

#[test]
fn definitions_have_the_columns_of_flux() {
    let ready = ("Ready", "string", READY, None);
    let status = ("Status", "string", MESSAGE, None);
    let age = ("Age", "date", CREATED, None);
    let last_run = ("Last run", "string", ".status.lastAutomationRunTime", Some(1));
    let last_scan = ("Last scan", "string", ".status.lastScanResult.scanTime", Some(1));
    let repository_image = ("Image", "string", ".spec.image", None);
    let tags = ("Tags", "string", ".status.lastScanResult.tagCount", None);
    let policy_image = ("Image", "string", ".status.latestRef.name", None);
    let tag = ("Tag", "string", ".status.latestRef.tag", None);
    let url = ("URL", "string", ".spec.url", None);
    for (kind, expected) in [
        ("ImageUpdateAutomation", vec![ready, status, last_run, age]),
        ("ImageRepository", vec![repository_image, tags, ready, status, last_scan, age]),
        ("ImagePolicy", vec![policy_image, tag, ready, status, age]),
        ("GitRepository", vec![url, age, ready, status]),
    ] {
        let crd = crd(kind);
        let columns = version(&crd, "v1").additional_printer_columns.iter().flatten();
        let columns: Vec<_> = columns
            .map(|column| {
                (column.name.as_str(), column.type_.as_str(), column.json_path.as_str(), column.priority)
            })
            .collect();
        assert_eq!(columns, expected, "{kind}");
    }
}

#[test]
fn definitions_have_the_validation_rules() {
    let policy: &[(&str, &str)] = &[
        (
            "!has(self.interval) || (has(self.digestReflectionPolicy) && self.digestReflectionPolicy == 'Always')",
            "spec.interval is only accepted when spec.digestReflectionPolicy is set to 'Always'",
        ),
        (
            "has(self.interval) || !has(self.digestReflectionPolicy) || self.digestReflectionPolicy != 'Always'",
            "spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'",
        ),
    ];
    let git: &[(&str, &str)] = &[(
        "!has(self.serviceAccountName) || (has(self.provider) && self.provider in ['azure', 'aws'])",
        "spec.serviceAccountName is only accepted when spec.provider is set to 'azure' or 'aws'",
    )];
    for (kind, expected) in [
        ("ImagePolicy", policy),
        ("GitRepository", git),
        ("ImageRepository", &[]),
        ("ImageUpdateAutomation", &[]),
    ] {
        let crd = crd(kind);
        for version in ["v1", "v1beta2"] {
            let schema = crds::schema(std::slice::from_ref(&crd), &crd.spec.group, version, kind)
                .expect("the kind is one of ours");
            let spec = &schema.properties.as_ref().expect("a root has properties")["spec"];
            let rules = spec.x_kubernetes_validations.iter().flatten();
            let rules: Vec<_> =
                rules.map(|rule| (rule.rule.as_str(), rule.message.as_deref().unwrap_or_default())).collect();
            assert_eq!(rules, expected, "{kind} {version}");
        }
    }
}

#[test]
fn definitions_round_trip_through_yaml() {
    for (crd, file) in crds::all().iter().zip(crds::files()) {
        let read: CustomResourceDefinition =
            serde_saphyr::from_str(&file.text).expect("the file is a CRD in YAML");
        assert_eq!(&read, crd, "{}", file.path);
    }
}

#[test]
fn texts_that_look_like_other_types_are_quoted() {
    let mut crd = crd("ImagePolicy").clone();
    for text in
        ["y", "on", "No", "null", "~", "1e3", "0x1f", "12:30", "2020-01-01", "", " a", "a: b", "*", r"a\.b"]
    {
        crd.spec.names.categories = Some(vec![text.to_owned()]);
        let yaml = crds::to_yaml(&crd);
        let read: CustomResourceDefinition =
            serde_saphyr::from_str(&yaml).expect("the text is a CRD in YAML");
        assert_eq!(read.spec.names.categories, crd.spec.names.categories, "{text}");
        let plain = format!("    - {text}\n");
        assert_eq!(yaml.contains(&plain), text == r"a\.b", "{text}");
    }
}
