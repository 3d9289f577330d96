//! The table of `hack/oracle/message`: Go's output for templates on the same data.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde::Deserialize;
use tagboat_api::ObjectName;
use tagboat_api::settings::TemplateLanguage;

use super::data::{min_size, size_of_changes};
use super::limits::MAX_DATA;
use super::recorded;
use super::{DEFAULT_MESSAGE, MessageData, Template, TemplateError, TemplateErrorKind, UpdateData, presets};
use crate::reference::ImageReference;
use crate::update::{Change, ObjectIdentifier, ResultV2};

#[derive(Deserialize)]
struct Table {
    go: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    data: String,
    template: String,
    #[serde(default)]
    text: String,
    error: Option<String>,
}

fn data(name: &str) -> MessageData {
    let json: &[u8] = match name {
        "several" => include_bytes!("../../testdata/message/data/several.json"),
        "nothing" => include_bytes!("../../testdata/message/data/nothing.json"),
        "sample" => include_bytes!("../../testdata/message/data/sample.json"),
        "one" => include_bytes!("../../testdata/message/data/one.json"),
        other => panic!("there are no data named {other}"),
    };
    let result = recorded::read(json).unwrap().remove(0);
    result.data(&result.automation().unwrap()).unwrap()
}

fn render(data: &MessageData, text: &str, language: TemplateLanguage) -> Result<String, String> {
    let template = Template::compile(text, language).map_err(|error| error.detail())?;
    let message = template.render(data).map_err(|error| error.detail())?;
    Ok(String::from_utf8(message).unwrap())
}

#[test]
fn messages_render_as_in_go() {
    let table: Table = serde_json::from_str(include_str!("../../testdata/message/table.json")).unwrap();
    assert_eq!(table.go, "go1.26.8");
    let mut report = String::new();
    let mut wrong = 0;
    for Case { data: name, template, text, error } in &table.cases {
        let expected = match error {
            Some(error) => Err(error.clone()),
            // An empty output of Go is the default message here.
            None if text.trim_ascii().is_empty() => Ok(DEFAULT_MESSAGE.to_owned()),
            None => Ok(text.clone()),
        };
        let rendered = render(&data(name), template, TemplateLanguage::Go);
        if expected != rendered {
            wrong += 1;
            writeln!(report, "{name} {template:?}\n  Go:   {expected:?}\n  ours: {rendered:?}").unwrap();
        }
    }
    assert!(wrong == 0, "{wrong} of {} cases differ:\n{report}", table.cases.len());
}

#[test]
fn the_table_has_the_presets_as_they_are() {
    let cases = include_str!("../../testdata/message/table.json");
    let Table { cases, .. } = serde_json::from_str(cases).unwrap();
    for preset in presets() {
        let named = format!("preset:{}", preset.name);
        let of_preset: Vec<&Case> = cases.iter().filter(|case| case.template == preset.text).collect();
        assert_eq!(of_preset.len(), 4, "{named}: put its text into the cases, and run make oracle");
        for language in [TemplateLanguage::Go, TemplateLanguage::Handlebars] {
            for Case { data: name, text, .. } in &of_preset {
                assert_eq!(render(&data(name), &named, language).as_ref(), Ok(text), "{named} {name}");
            }
        }
    }
}

#[test]
fn the_sample_of_the_table_is_the_embedded_one() {
    assert_eq!(data("sample"), MessageData::sample());
}

#[test]
fn an_empty_or_blank_message_becomes_the_default() {
    for language in [TemplateLanguage::Go, TemplateLanguage::Handlebars] {
        for text in
            ["", " ", "\n", " \t\r\n ", "{{#if Values.nope}}x{{/if}}\n", "{{ if .Values.nope }}x{{ end }}\n"]
        {
            if text.contains('#') == (language == TemplateLanguage::Handlebars) || !text.contains('{') {
                assert_eq!(render(&data("one"), text, language).as_deref(), Ok(DEFAULT_MESSAGE), "{text:?}");
            }
        }
    }
    assert_eq!(render(&data("one"), "\n x \n", TemplateLanguage::Go).as_deref(), Ok("\n x \n"));
}

#[test]
fn foreign_text_cannot_begin_a_line() {
    let foreign = "x\r\nSigned-off-by: mallory\u{2028}\u{85}\u{0}";
    let json = serde_json::json!({
        "automation": {"namespace": foreign, "name": foreign},
        "values": {"k\n": foreign},
        "policies": {foreign: {"name": "reg.io/app", "tag": "1"}},
        "changes": {
            foreign: {"objects": [{
                "apiVersion": foreign, "kind": foreign, "namespace": foreign, "name": foreign,
                "changes": [{"oldValue": foreign, "newValue": foreign, "setter": format!("n:{foreign}:tag")}]
            }]},
            // Its cleaned name is that of the other.
            "x\\r\\nSigned-off-by: mallory\\u2028\\u0085\\x00": {"objects": [{"kind": "second", "changes": [{}]}]},
        }
    });
    let result = recorded::read(json.to_string().as_bytes()).unwrap().remove(0);
    let data = result.data(&result.automation().unwrap()).unwrap();
    for (text, language) in [
        (
            "{{ printf \"%v %#v\" . . }}{{ range .Updated.Images }}{{ .Policy }}{{ end }}",
            TemplateLanguage::Go,
        ),
        (
            "{{AutomationObject.String}}{{#each Changed.FileChanges}}{{@key}}{{#each this}}{{APIVersion}}{{Kind}}{{Name}}\
             {{Namespace}}{{#each Changes}}{{OldValue}}{{NewValue}}{{Setter}}{{/each}}{{/each}}{{/each}}\
             {{#each Updated.Images}}{{Policy.String}}{{/each}}",
            TemplateLanguage::Handlebars,
        ),
    ] {
        let data = data.clone().with_values(Default::default());
        let message = render(&data, text, language).unwrap();
        assert!(message.contains(r"x\r\nSigned-off-by: mallory\u2028\u0085\x00"), "{message}");
        assert!(!message.contains(|c: char| c.is_control() || c == '\u{2028}'), "{message:?}");
    }
    let values = "{{ range $k, $v := .Values }}{{ $k }}{{ $v }}{{ end }}";
    assert_eq!(render(&data, values, TemplateLanguage::Go), Ok(format!("k\n{foreign}")));
    assert_eq!(data.files().len(), 1);
    let kinds: Vec<&str> = data.files().values().flatten().map(|(object, _)| &*object.kind).collect();
    assert_eq!(kinds.len(), 2, "nothing is lost: {kinds:?}");
}

#[test]
fn handlebars_is_strict_plain_and_bounded() {
    let every = "{{#each Changed.Changes}}";
    let loops =
        |depth: usize| every.replace("Changed.", "@root.Changed.").repeat(depth) + &"{{/each}}".repeat(depth);
    for (text, expected) in [
        ("{{Values.html}} {{{Values.html}}}".to_owned(), Ok("<b>&</b> <b>&</b>")),
        ("{{AutomationObject.Namespace}}/{{AutomationObject.Name}}".to_owned(), Ok("flux-system/apps")),
        ("{{#each Values as |value key|}}{{key}}={{value}};{{else}}none{{/each}}".to_owned(), Ok(
            "cluster=prod;empty=;html=<b>&</b>;lines=one\ntwo;odd.key=odd;",
        )),
        ("{{#each Updated.Images}}{{@index}}{{#if @last}}{{Name}}{{/if}}{{/each}}".to_owned(), Ok(
            "012345ghcr.io/stefanprodan/podinfo:6.7.0",
        )),
        (
            "{{#each Changed.FileChanges as |objects file|}}{{file}}:{{#each objects as |object i|}} {{i}} {{object.Kind}}\
             {{#each object.Changes as |change|}} {{change.NewValue}}/{{@../index}}{{@root.Values.cluster}}{{/each}};{{/each}}{{/each}}".to_owned(),
            Ok("a.yaml: 0  ghcr.io/stefanprodan/podinfo/0prod;\
             \x201 Kustomization 1.2.3@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a/1prod localhost:5000/app/1prod;\
             a/web.yaml: 0 Deployment busybox:1.36/0prod 6.7.0/0prod;\
             b/web.yaml: 0 Deployment v2/0prod;\
             \x201 Deployment 6.7.0/1prod ghcr.io/stefanprodan/podinfo:6.7.0/1prod 6.7.0/1prod 6.7.0/1prod;\
             Ä ö/日本.yaml: 0 ConfigMap x/0prod;"),
        ),
        // A value with a text shows it; a value without one is an error, not a placeholder.
        ("{{AutomationObject}} {{#each Updated.Images}}{{#if @first}}{{this}} {{Policy}}{{/if}}{{/each}}".to_owned(), Ok(
            "flux-system/apps ghcr.io/stefanprodan/podinfo:6.7.0 flux-system/podinfo",
        )),
        ("x\n{{Changed}}".to_owned(), Err("2:1: Changed is an object, which has no text: show one of its members")),
        ("{{{Values}}}".to_owned(), Err("1:1: Values is an object, which has no text")),
        ("{{Changed.Changes}}".to_owned(), Err("Changed.Changes is a list of objects, which has no text")),
        ("{{#each Changed.Changes}}{{this}}{{/each}}".to_owned(), Err("this is an object, which has no text")),
        ("{{lookup Changed \"Changes\"}}".to_owned(), Err("what lookup finds is a list of objects")),
        ("{{@root.Values.cluster}}{{lookup Values \"cluster\"}}".to_owned(), Ok("prodprod")),
        ("{{len 3}}".to_owned(), Err("1:1: len of 3: only lists, objects and texts have a length")),
        ("{{len \"abc\"}}{{len Values}}{{len [1]}}".to_owned(), Ok("351")),
        ("{{len Nope}}".to_owned(), Err("there is no \"Nope\" in the data")),
        ("{{#Values}}x{{/Values}}".to_owned(), Err("A block needs one as well: {{#with Values}} or {{#each Values}}")),
        ("{{Foo}}".to_owned(), Err("template: commit message:1:1: there is no \"Foo\" in the data")),
        ("a\n {{Values.nope}}".to_owned(), Err("template: commit message:2:2: there is no \"Values.nope\" in the data")),
        ("{{#each Foo}}x{{/each}}".to_owned(), Err("there is no \"Foo\" in the data")),
        ("{{#each AutomationObject.Name}}x{{else}}not a list{{/each}}".to_owned(), Ok("not a list")),
        ("{{> other}}".to_owned(), Err("there is no partial \"other\"")),
        ("{{#if Values}}\n {{#> other}}x{{/other}}{{/if}}".to_owned(), Err("2:2: partials are not supported")),
        ("{{#*inline \"a\"}}{{> a}}{{/inline}}{{> a}}".to_owned(), Err("inline partials are not supported")),
        ("{{#each Changed.Changes as |c i|}}{{#if (eq i 0)}}{{c.NewValue}} {{lookup c \"Setter\"}}{{/if}}{{/each}}".to_owned(), Ok("ghcr.io/stefanprodan/podinfo flux-system:podinfo:name")),
        ("{{#eq Values.cluster \"prod\"}}a{{else}}b{{/eq}}{{#ne Values.cluster \"prod\"}}a{{else}}b{{/ne}}{{eq 1 1}}{{ne 1 1}}".to_owned(), Ok("abtruefalse")),
        ("{{#with (lookup Changed.Changes 1) as |c|}}{{c.Setter}} {{Setter}}{{/with}}".to_owned(), Ok("flux-system:pinned:tag@digest flux-system:pinned:tag@digest")),
        ("{{#each (lookup Changed \"Changes\") as |c|}}{{#if @first}}{{c.NewValue}} {{NewValue}} {{../Values.cluster}}{{/if}}{{/each}}".to_owned(), Ok("ghcr.io/stefanprodan/podinfo ghcr.io/stefanprodan/podinfo prod")),
        ("{{#each [{\"a\": 1}, {\"a\": 2}] as |x|}}{{x.a}}{{a}}{{lookup x \"a\"}}{{/each}}".to_owned(), Ok("111222")),
        ("{{#each Changed.FileChanges as |objects file|}}{{#each objects as |o|}}{{o.Kind}}={{lookup (lookup o.Changes 0) \"NewValue\"}};{{/each}}{{/each}}".to_owned(), Ok(
            "=ghcr.io/stefanprodan/podinfo;Kustomization=1.2.3@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a;\
             Deployment=busybox:1.36;Deployment=v2;Deployment=6.7.0;ConfigMap=x;",
        )),
        ("{{#eq Values.nope 1}}x{{/eq}}".to_owned(), Err("eq param at index 0 required but not found")),
        ("{{lookup Values \"nope\"}}".to_owned(), Err("1:1: a value is not in the data")),
        ("{{lookup Changed.Changes 99}}".to_owned(), Err("a value is not in the data")),
        ("{{log \"x\"}}".to_owned(), Err("there is no helper \"log\"")),
        ("{{#if".to_owned(), Err("template: commit message:1:6: invalid syntax: expected ")),
        ("{{#if x}}{{/each}}".to_owned(), Err("helper \"if\" was opened, but \"each\" is closing")),
        ("{{#if Values}}".repeat(100) + "x" + &"{{/if}}".repeat(100), Ok("x")),
        (format!("{{{{not {}Values{}}}}}", "(not ".repeat(99), ")".repeat(99)), Ok("true")),
        ("x".repeat((1 << 16) + 1), Err("the template has 65537 bytes, and at most 65536 are allowed")),
        ("{{Values.[odd.key]}} {{lookup Values \"odd.key\"}}".to_owned(), Ok("odd odd")),
        (loops(20), Err("the template takes more than the limit of ")),
        (loops(101), Err("deeper than 100 levels")),
        (format!("{{{{len {}Values{}}}}}", "(len ".repeat(9000), ")".repeat(9000)), Err("deeper than 100 levels")),
        (
            every.replace("Changed.", "@root.Changed.").repeat(5) + &"long ".repeat(1000) + &"{{/each}}".repeat(5),
            Err("the message is longer than the limit of "),
        ),
    ] {
        let rendered = render(&data("several"), &text, TemplateLanguage::Handlebars);
        match (&rendered, expected) {
            (Ok(message), Ok(expected)) => assert_eq!(message, expected, "{text}"),
            (Err(error), Err(words)) => assert!(error.contains(words), "{text:.80}: {error}"),
            _ => panic!("{text:.80}: {rendered:?}"),
        }
    }
}

#[test]
fn an_update_of_six_thousand_objects_has_a_message() {
    let object = |number: usize| {
        let value = "v".repeat(100);
        serde_json::json!({"kind": "Deployment", "name": format!("app-{number}"), "changes": [
            {"oldValue": format!("{value}{number}"), "newValue": value, "setter": "n:p:tag"}
        ]})
    };
    let objects: Vec<_> = (0..6_000).map(object).collect();
    let json =
        serde_json::json!({"changes": {"all.yaml": {"objects": objects}}, "automation": {"name": "a"}});
    let result = recorded::read(json.to_string().as_bytes()).unwrap().remove(0);
    let data = result.data(&result.automation().unwrap()).unwrap();
    for preset in presets() {
        let message = render(&data, preset.text, TemplateLanguage::Go).unwrap();
        assert!(preset.name == "summary" || message.lines().count() > 6_000, "{}", preset.name);
    }
    let error =
        render(&super::tests::data("one"), "{{ repeat 3000000 \"x\" }}", TemplateLanguage::Go).unwrap_err();
    assert!(error.contains("larger than the limit"), "{error}");
}

/// An update of `count` distinct images, in a file each or all in one object.
fn large_update(count: usize, is_one_object: bool) -> crate::message::MessageData {
    let change = |number: usize| {
        serde_json::json!({"oldValue": format!("registry.example.com/team/svc-{number}:1.0.0"),
            "newValue": format!("registry.example.com/team/svc-{number}:1.0.1"), "setter": format!("n:svc-{number}")})
    };
    let file = |changes: Vec<serde_json::Value>, number: usize| {
        let object =
            serde_json::json!({"kind": "Deployment", "name": format!("svc-{number}"), "changes": changes});
        (format!("apps/svc-{number:05}.yaml"), serde_json::json!({"objects": [object]}))
    };
    let files: serde_json::Map<String, serde_json::Value> = if is_one_object {
        [file((0..count).map(change).collect(), 0)].into_iter().collect()
    } else {
        (0..count).map(|number| file(vec![change(number)], number)).collect()
    };
    let image = |number| {
        let name = format!("registry.example.com/team/svc-{number}");
        (format!("svc-{number}"), serde_json::json!({"name": name, "tag": "1.0.1"}))
    };
    let policies: serde_json::Map<String, serde_json::Value> = (0..count).map(image).collect();
    let json = serde_json::json!({"automation": {"name": "a"}, "changes": files, "policies": policies});
    let result = recorded::read(json.to_string().as_bytes()).unwrap().remove(0);
    result.data(&result.automation().unwrap()).unwrap()
}

/// With 2,700 distinct images two of three presets exceeded their steps.
#[test]
fn every_preset_renders_updates_of_ten_thousand_images() {
    for is_one_object in [false, true] {
        let data = large_update(10_000, is_one_object);
        for preset in presets() {
            let message = render(&data, preset.text, TemplateLanguage::Go).unwrap();
            let is_named = message.contains("registry.example.com/team/svc-9999:1.0.1");
            assert!(is_named && message.lines().count() > 10_000, "{}", preset.name);
        }
        assert_eq!(
            render(&data, "{{ .Updated.Images | toStrings | uniq | len }}", TemplateLanguage::Go),
            Ok("10000".to_owned())
        );
    }
}

/// The work of a function counts, not only its result.
///
/// These templates used to take a minute and more.
#[test]
fn functions_over_all_data_in_a_loop_reach_the_step_limit() {
    let data = large_update(100, false);
    for inner in
        ["{{ $_ := toJson $.Changed | sha256sum }}", "{{ range $.Changed.FileChanges }}{{ break }}{{ end }}"]
    {
        let text = format!("{{{{ range 100000 }}}}{inner}{{{{ end }}}}");
        let error = render(&data, &text, TemplateLanguage::Go).unwrap_err();
        assert!(error.contains("more than the limit of "), "{inner}: {error:.300}");
    }
    let lengths = "{{ range .Changed.Changes }}{{ len $.Changed.Changes }}{{ end }}";
    assert_eq!(render(&data, lengths, TemplateLanguage::Go), Ok("100".repeat(100)));
}

/// Templates used to occupy a thread for all their steps, which grew with the data.
#[test]
fn a_rendering_is_interrupted_in_any_language() {
    let data = large_update(100, false);
    for (text, language) in [
        ("{{ range 100000 }}{{ len $.Changed.Changes }}{{ end }}", TemplateLanguage::Go),
        (
            "{{#each Changed.Changes}}{{#each @root.Changed.Changes}}{{#if @first}}{{/if}}{{/each}}{{/each}}",
            TemplateLanguage::Handlebars,
        ),
    ] {
        let template = Template::compile(text, language).unwrap();
        let polls = std::cell::Cell::new(0);
        let is_interrupted = || polls.replace(polls.get() + 1) == 3;
        let error = template.render_within(MAX_DATA, &data, &is_interrupted).unwrap_err();
        assert!(matches!(error, TemplateErrorKind::Interrupted), "{error:?}");
        assert_eq!(polls.get(), 4, "{text}");
        let error = template.render_within(MAX_DATA, &data, &|| true).unwrap_err();
        assert_eq!(error.to_string(), "the rendering of the template was interrupted");
    }
}

/// The memory of a template used to grow with its data.
///
/// With 9,000 changes, a gigabyte was allowed.
#[test]
fn the_memory_limit_of_a_template_does_not_grow_with_the_data() {
    let hostile = "{{ $d := dict }}{{ range until 600 }}{{ $_ := set $d (toString .) (splitList \"\" (repeat 20000 \"a\")) }}{{ end }}";
    for count in [1, 9_000] {
        let error = render(&large_update(count, true), hostile, TemplateLanguage::Go).unwrap_err();
        assert!(
            error.ends_with("the values of the template take more memory than the limit of 25165824 bytes"),
            "{error}"
        );
    }
}

#[test]
fn data_of_too_many_changes_are_refused_before_they_are_values() {
    let data = large_update(20_000, false);
    for (language, text) in [(TemplateLanguage::Go, "x"), (TemplateLanguage::Handlebars, "x")] {
        let error = render(&data, text, language).unwrap_err();
        assert!(
            error.starts_with("20000 changes take 1") || error.starts_with("20000 changes take 3"),
            "{error}"
        );
        assert!(
            error.contains("bytes of memory in a template, and at most 134217728 are allowed"),
            "{error}"
        );
    }
}

/// An update of `count` files, of which every tenth has a distinct value.
fn update_of_files(count: usize) -> ResultV2 {
    let object = |number| ObjectIdentifier { name: format!("app-{number}"), ..ObjectIdentifier::default() };
    let change = |number| Change {
        old_value: if number % 10 == 0 { format!("0.{number}\n") } else { "1".to_owned() },
        new_value: "2".to_owned(),
        setter: format!("n:p{}:tag", number % 2),
        line: 1,
    };
    let changes = |number| [(object(number), change(number)), (object(number / 2), change(number / 3))];
    let file = |number| (format!("f{number}.yaml").into(), Arc::new(changes(number).into_iter().collect()));
    ResultV2 { file_changes: (0..count).map(file).collect() }
}

/// Renders with the data that a template mentions, or with all data.
fn render_update(
    count: usize,
    (text, language): (&str, TemplateLanguage),
    with_all: bool,
) -> Result<String, String> {
    let image = ImageReference::parse("ghcr.io/org/app:2").unwrap();
    let policies = [0, 1].map(|p| ObjectName { namespace: "n".to_owned(), name: format!("p{p}") });
    let images = policies.iter().map(|policy| (policy, &image)).collect();
    let automation = ObjectName { namespace: "n".to_owned(), name: "fleet".to_owned() };
    let values = [("k".to_owned(), "v".to_owned())].into();
    let result = update_of_files(count);
    let update = UpdateData { automation: &automation, values: &values, result: &result, images: &images };
    let template = Template::compile(text, language).unwrap();
    let text = |rendered: Result<Vec<u8>, TemplateError>| match rendered {
        Ok(message) => Ok(String::from_utf8(message).unwrap()),
        Err(error) => Err(error.detail()),
    };
    text(match with_all {
        true => template.render(&MessageData::new(&automation, values.clone(), &result, &images)),
        false => template.render_update(&update, 64 << 20, &|| false),
    })
}

/// None of these rendered from 16,000 files on, although they use almost nothing of them.
const OF_NO_FILE: [(&str, TemplateLanguage); 6] = [
    ("{{ .AutomationObject }} {{ .Values.k }}", TemplateLanguage::Go),
    (
        "{{ range .Updated.Images }}{{ println . .Policy.Name }}{{ end }}{{ len .Changed.ImageResult.Images }}",
        TemplateLanguage::Go,
    ),
    ("{{ with .Changed }}{{ range .Changes }}{{ .OldValue }} {{ end }}{{ end }}", TemplateLanguage::Go),
    ("{{ define \"x\" }}{{ len .Changed.Changes }}{{ end }}{{ template \"x\" . }}", TemplateLanguage::Go),
    ("{{AutomationObject.Name}} {{len Changed.Changes}} Updated", TemplateLanguage::Handlebars),
    ("{{#each Updated.Images}}{{this.String}} {{Policy.Name}}{{/each}}", TemplateLanguage::Handlebars),
];

/// The others use the data of files and objects.
const OF_FILES: [(&str, TemplateLanguage); 10] = [
    ("{{ range $file, $_ := .Changed.FileChanges }}{{ $file }}{{ end }}", TemplateLanguage::Go),
    ("{{ len .Changed.Objects }}", TemplateLanguage::Go),
    ("{{ len .Updated.Files }}", TemplateLanguage::Go),
    ("{{ toJson .Changed | len }}", TemplateLanguage::Go),
    ("{{ $x := . }}{{ printf \"%v\" $x | len }}", TemplateLanguage::Go),
    ("{{len Changed.FileChanges}}", TemplateLanguage::Handlebars),
    ("{{#each Changed}}{{@key}}{{/each}}", TemplateLanguage::Handlebars),
    ("{{#with Updated}}{{len Files}}{{/with}}", TemplateLanguage::Handlebars),
    ("{{#each \n this}}{{@key}}{{/each}}", TemplateLanguage::Handlebars),
    ("{{#with Updated.[Files]}}{{/with}}{{#if (or \"}}\" Objects)}}x{{/if}}", TemplateLanguage::Handlebars),
];

#[test]
fn a_message_is_the_same_whether_its_data_have_files_or_not() {
    for template in OF_NO_FILE.into_iter().chain(OF_FILES) {
        let (of_update, of_all) = (render_update(200, template, false), render_update(200, template, true));
        assert_eq!(of_update, of_all, "{template:?}");
        assert!(of_all.is_ok_and(|text| !text.is_empty()), "{template:?}");
    }
}

#[test]
fn a_template_that_does_not_mention_files_renders_for_any_number_of_them() {
    for template in OF_NO_FILE {
        let rendered = render_update(20_000, template, false);
        assert!(rendered.is_ok(), "{template:?}: {rendered:?}");
    }
    for template in OF_FILES {
        let error = render_update(20_000, template, false).unwrap_err();
        assert!(error.starts_with("40000 changes take "), "{template:?}: {error}");
    }
}

/// All old values used to be copied before the limit was checked.
///
/// The old value of a marker may be as long as a file.
#[test]
fn long_values_count_before_they_are_copied() {
    for text in ["x".repeat(3 << 20), "\u{1}".repeat(1 << 20)] {
        let change = |line| Change {
            old_value: format!("{line}{text}"),
            new_value: "2".to_owned(),
            setter: "n:p0".to_owned(),
            line,
        };
        let file = |line| {
            let changes = [(ObjectIdentifier::default(), change(line))];
            (format!("f{line}.yaml").into(), Arc::new(changes.into_iter().collect()))
        };
        let result = ResultV2 { file_changes: (0..2).map(file).collect() };
        let automation = ObjectName { namespace: "n".to_owned(), name: "fleet".to_owned() };
        let images = BTreeMap::new();
        let data = MessageData::new(&automation, BTreeMap::new(), &result, &images);
        let copied: usize = data.changes().iter().map(|change| change.old_value.len()).sum();
        let changes = size_of_changes(result.changes());
        for size in [min_size(&result), changes, data.size()] {
            assert!((2 * copied..3 * copied).contains(&size), "{size} of {copied}");
        }
    }
}

/// An error used to contain all data, and to be in a condition.
#[test]
fn a_long_value_is_shortened_in_an_error() {
    let data = large_update(1_000, false);
    for text in ["{{ range .Changed }}{{ end }}", "{{ eq .Changed .Changed.FileChanges }}"] {
        let error = render(&data, text, TemplateLanguage::Go).unwrap_err();
        assert!(error.len() < 4_096 && error.contains(" … "), "{} bytes", error.len());
    }
}

/// An error about one long name used to take 60 KB in logs and terminals.
#[test]
fn a_long_template_is_shortened_in_an_error() {
    let data = large_update(1, false);
    let long = "x".repeat(60_000);
    for (language, text) in [
        (TemplateLanguage::Go, format!("{{{{ {long} }}}}")),
        (TemplateLanguage::Go, format!("{{{{ .{long} }}}}")),
        (TemplateLanguage::Go, format!("{{{{ template \"{long}\" }}}}")),
        (
            TemplateLanguage::Go,
            format!("{{{{ define \"{long}\" }}}}{{{{ .A }}}}{{{{ end }}}}{{{{ template \"{long}\" . }}}}"),
        ),
        (TemplateLanguage::Go, format!("{{{{ index . \"{long}\" }}}}")),
        (TemplateLanguage::Go, format!("{{{{ fail \"{long}\" }}}}")),
        (TemplateLanguage::Go, format!("preset:{long}")),
        (TemplateLanguage::Go, format!("preset:{}", "\u{1}".repeat(60_000))),
        (TemplateLanguage::Handlebars, format!("{{{{{long}}}}}")),
        (TemplateLanguage::Handlebars, format!("{{{{#{long} x}}}}{{{{/{long}}}}}")),
        (TemplateLanguage::Handlebars, format!("{{{{#if x}}}}{{{{/{long}}}}}")),
        (TemplateLanguage::Handlebars, format!("{{{{> {long}}}}}")),
        (TemplateLanguage::Handlebars, format!("{{{{ {long} ")),
    ] {
        let error = render(&data, &text, language).unwrap_err();
        assert!(error.len() < 8_500, "{} bytes: {error:.200}", error.len());
    }
}
