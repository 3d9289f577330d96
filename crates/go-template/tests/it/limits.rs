//! The limits of a rendering.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use tagboat_go_template::{
    Field, Limits, Map, Method, Slice, Struct, StructType, Template, TemplateError, Type, Value,
};

/// A low limit of steps, which is reached soon.
const FEW_STEPS: Limits =
    Limits { depth: 250, steps: 100_000, output: 1 << 20, value: 1 << 20, memory: 24 << 20 };

fn failure(text: &str) -> String {
    failure_within(text, Limits::default())
}

fn failure_within(text: &str, limits: Limits) -> String {
    let rendered =
        Template::parse("x", text).and_then(|template| template.render_within(&Value::Nil, limits));
    rendered.expect_err(&format!("{text} should go beyond a limit")).to_string()
}

#[test]
fn a_recursive_template_reaches_the_depth_limit() {
    let error = failure(r#"{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}"#);
    assert!(error.contains("deeper than the limit of 250 levels"), "{error}");
}

#[test]
fn parentheses_and_actions_have_a_deepest_level() {
    let error = failure(&format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)));
    assert!(error.contains("nested deeper than 100 levels"), "{error}");
    let error = failure(&format!("{}{}", "{{ if 1 }}".repeat(10_000), "{{ end }}".repeat(10_000)));
    assert!(error.contains("nested deeper than 100 levels"), "{error}");
    let error = failure(&format!("{{{{ if 0 }}}}{}{{{{ end }}}}", "{{ else if 0 }}".repeat(10_000)));
    assert!(error.contains("nested deeper than 100 levels"), "{error}");
}

#[test]
fn a_loop_ends() {
    let error = failure("{{ range 100000 }}{{ range 100000 }}{{ end }}{{ end }}");
    assert!(error.contains("more than the limit of 1000000 steps"), "{error}");
}

#[test]
fn text_has_a_bound() {
    let error = failure("{{ range 1000 }}{{ printf \"%10000d\" 1 }}{{ end }}");
    assert!(error.contains("the text is longer than the limit of 1048576 bytes"), "{error}");
}

#[test]
fn values_have_a_bound() {
    for text in [
        r#"{{ repeat 1000000000 "x" }}"#,
        r#"{{ $x := "xxxxxxxx" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}"#,
        r#"{{ until 100000000 }}"#,
        r#"{{ seq 1 100000000 }}"#,
        r#"{{ $x := list 1 }}{{ range 40 }}{{ $x = concat $x $x }}{{ end }}"#,
        r#"{{ printf "%1000000d%1000000d" 1 1 }}"#,
        r#"{{ indent 100000000 "x" }}"#,
        r#"{{ replace "" (repeat 1000 "y") (repeat 10000 "x") }}"#,
        r#"{{ $x := repeat 100000 "x" }}{{ $x | replace "x" $x }}"#,
        r#"{{ $x := list (repeat 1000000 "x") }}{{ join "" (concat $x $x $x) }}"#,
        r#"{{ regexReplaceAll "x" (repeat 100000 "x") (repeat 100000 "y") }}"#,
        r#"{{ $x := repeat 1000000 "x" }}{{ toJson (list $x $x $x $x) }}"#,
        r#"{{ $x := list }}{{ range 200 }}{{ $x = list $x $x }}{{ end }}"#,
        r#"{{ cat (repeat 1000000 "x") (repeat 1000000 "x") }}"#,
        r#"{{ wrapWith 1 (repeat 100 "y") (repeat 100000 "x") }}"#,
    ] {
        let error = failure(text);
        assert!(error.contains("limit of"), "{text}: {error}");
    }
}

#[test]
fn cyclic_dicts_reach_the_depth_limit() {
    let circle = r#"{{ $d := dict "a" 1 }}{{ $_ := set $d "d" $d }}"#;
    for rest in
        ["{{ $d }}", "{{ toJson $d }}", "{{ mustToJson $d }}", "{{ deepCopy $d }}", "{{ printf \"%v\" $d }}"]
    {
        let error = failure(&format!("{circle}{rest}"));
        assert!(error.contains("limit of 100 levels"), "{error}");
    }
    let template = Template::parse("x", &format!("{circle}{{{{ len $d }}}}")).unwrap();
    assert_eq!(template.render(&Value::Nil).unwrap(), b"2");
}

#[test]
fn long_chains_of_dicts_are_freed() {
    let chain =
        r#"{{ $d := dict }}{{ range 14000 }}{{ $e := dict "d" $d }}{{ $d = $e }}{{ end }}{{ len $d }}"#;
    let template = Template::parse("x", chain).unwrap();
    assert_eq!(template.render(&Value::Nil).unwrap(), b"1");
}

#[test]
fn the_deepest_levels_fit_the_stack() {
    let inner = format!("{}template_{}", "(print ".repeat(40), ")".repeat(40));
    let body = inner.replace("template_", "1");
    let text = format!(
        "{{{{ define \"a\" }}}}{}{{{{ template \"a\" }}}}{{{{ {body} }}}}{}{{{{ end }}}}{{{{ template \"a\" }}}}",
        "{{ if 1 }}".repeat(50),
        "{{ end }}".repeat(50)
    );
    assert!(failure(&text).contains("deeper than the limit"));
}

#[test]
fn any_width_and_precision_can_be_asked_for() {
    for verb in ["%.70000f", "%.70000e", "%.70000x", "%#.70000g", "%.70000d", "%070000d", "%.70000U"] {
        let number = if verb.ends_with(['d', 'U']) { "65" } else { "1.5" };
        let template = Template::parse("x", &format!("{{{{ printf \"{verb}\" {number} | len }}}}")).unwrap();
        let length = template.render(&Value::Nil).unwrap();
        assert!(length.starts_with(b"7000"), "{verb}: {}", String::from_utf8_lossy(&length));
    }
}

#[test]
fn regular_expressions_have_bounds() {
    for text in [
        r#"{{ regexMatch (repeat 10000 "\\pL") "a" }}"#,
        r#"{{ regexMatch (print "[" (repeat 100000 "\\pL") "]") "a" }}"#,
        r#"{{ regexMatch "(?i)\\pL{1000}" "a" }}"#,
        r#"{{ range 900 }}{{ $_ := regexMatch (printf "\\pL{20}%d" .) "x" }}{{ end }}"#,
        r#"{{ regexReplaceAll "(x+)" (repeat 1000000 "x") (repeat 500000 "$1") }}"#,
        r#"{{ regexFindAll "a*b|a" (repeat 1000000 "a") -1 }}"#,
        r#"{{ regexFind "(0|1)*1(0|1){900}(2)" (repeat 250000 "0110") }}"#,
        r#"{{ regexSplit "" (repeat 1000000 "a") -1 }}"#,
    ] {
        let error = failure_within(text, FEW_STEPS);
        assert!(error.contains("limit of"), "{text}: {error}");
    }
}

#[test]
fn operations_over_many_values_cost_many_steps() {
    let dict = "{{ $d := dict }}{{ range 6000 }}{{ $_ := set $d (print .) . }}{{ end }}";
    for text in [
        format!("{dict}{{{{ range 100000 }}}}{{{{ range $d }}}}{{{{ break }}}}{{{{ end }}}}{{{{ end }}}}"),
        format!("{dict}{{{{ range 100000 }}}}{{{{ $_ := keys $d }}}}{{{{ end }}}}"),
    ] {
        let error = failure_within(&text, FEW_STEPS);
        assert!(error.contains("more than the limit of 100000 steps"), "{text}: {error}");
    }
}

#[test]
fn indexed_access_costs_the_same_in_large_lists() {
    let text = "{{ $l := until 5000 }}{{ range $i, $_ := $l }}\
        {{ if eq (add1 $i) (len $l | int64) }}{{ index $l $i }} {{ first $l }}{{ end }}{{ end }}";
    let template = Template::parse("x", text).unwrap();
    assert_eq!(template.render(&Value::Nil).unwrap(), b"4999 0");
}

#[test]
fn a_long_set_of_characters_is_trimmed_in_linear_time() {
    let text = r#"{{ trimAll (print (repeat 500000 "y") "x") (repeat 1000000 "x") | len }}"#;
    assert_eq!(Template::parse("x", text).unwrap().render(&Value::Nil).unwrap(), b"0");
}

#[test]
fn limits_can_be_set() {
    let template = Template::parse("x", "{{ range 10 }}ab{{ end }}").unwrap();
    let limits = Limits { output: 19, ..Limits::default() };
    let error = template.render_within(&Value::Nil, limits).unwrap_err().to_string();
    assert_eq!(
        error,
        "template: x:1:14: executing \"x\" at <ab>: the text is longer than the limit of 19 bytes"
    );
    assert_eq!(template.render(&Value::Nil).unwrap(), "ab".repeat(10).as_bytes());
}

#[test]
fn searching_takes_no_longer_than_reading() {
    let text = r#"{{ $a := repeat 500000 "a" }}{{ contains (print $a "b") (print $a $a) }}{{ replace (print $a "b") "" (print $a $a) | len }}"#;
    let template = Template::parse("x", text).unwrap();
    assert_eq!(template.render(&Value::Nil).unwrap(), b"false1000000");
}

#[test]
fn the_memory_of_values_is_bounded() {
    for text in [
        r#"{{ split "a" (repeat 1000000 "a") }}"#,
        r#"{{ splitList "" (repeat 1000000 "a") }}"#,
        r#"{{ $d := dict }}{{ range until 600 }}{{ $_ := set $d (toString .) (splitList "" (repeat 10000 "a")) }}{{ end }}"#,
        r#"{{ $l := list }}{{ range 100 }}{{ $l = append $l (repeat 1000000 "a") }}{{ end }}"#,
        r#"{{ $l := until 100000 }}{{ $m := list }}{{ range 100 }}{{ $m = append $m (concat $l) }}{{ end }}"#,
    ] {
        let error = failure(text);
        assert!(error.contains("more memory than the limit of 25165824 bytes"), "{text}: {error}");
    }
}

/// Released memory does not count.
/// A list that grows by one element at a time is copied each time.
#[test]
fn released_values_do_not_count_as_memory() {
    for (text, wanted) in [
        (r#"{{ range 500 }}{{ $x := repeat 100000 "a" }}{{ $x = "" }}{{ end }}ok"#, "ok"),
        (r#"{{ $l := list }}{{ range 2500 }}{{ $l = append $l (print .) }}{{ end }}{{ len $l }}"#, "2500"),
        (r#"{{ range 20000 }}{{ $d := dict "a" 1 }}{{ $_ := set $d "d" 2 }}{{ end }}ok"#, "ok"),
    ] {
        let limits = Limits { steps: 10_000_000, ..Limits::default() };
        let template = Template::parse("x", text).unwrap();
        let rendered = template.render_within(&Value::Nil, limits);
        assert_eq!(rendered.as_deref(), Ok(wanted.as_bytes()), "{text}");
    }
}

#[test]
fn variables_have_a_bound() {
    let text = format!(
        r#"{{{{ define "a" }}}}{}{{{{ template "a" }}}}{{{{ end }}}}{{{{ template "a" }}}}"#,
        "{{ $x := 1 }}".repeat(200)
    );
    assert!(failure(&text).contains("more variables than the limit of 10000"));
}

#[test]
fn a_rendering_can_be_interrupted() {
    let template = Template::parse("x", "{{ range 100000 }}{{ end }}").unwrap();
    let polls = Cell::new(0);
    let is_interrupted = || polls.replace(polls.get() + 1) == 5;
    let rendered = template.render_until(&Value::Nil, Limits::default(), &is_interrupted);
    assert_eq!(rendered, Err(TemplateError::Interrupted));
    assert_eq!(polls.get(), 6);
}

/// A method that collects a list was called anew in each iteration, almost for free.
#[test]
fn a_method_call_is_evaluated_once() {
    static GATHERED: AtomicUsize = AtomicUsize::new(0);
    static ANY: Type = Type::String;
    static ALL: StructType = StructType {
        name: "t.All",
        fields: &[Field::new("Of", Type::String)],
        methods: &[
            Method::new("List", |value, _| {
                GATHERED.fetch_add(1, Ordering::Relaxed);
                let Value::Struct(all) = value else { return Err("no struct".to_owned()) };
                Ok(Slice::new(&ANY, vec![all.field("Of").unwrap_or(Value::Nil)]).into())
            }),
            Method {
                parameters: &[Type::String],
                ..Method::new("With", |_, given| Ok(Slice::new(&ANY, given.to_vec()).into()))
            },
        ],
    };
    let all = |of: &str| Value::from(Struct::new(&ALL, vec![of.into()]));
    let data = Map::dict([("a".into(), all("1")), ("b".into(), all("2"))]);
    let text = "{{ range 100 }}{{ $.a.List }}{{ $.b.List }}{{ $.a.With . | toString }}{{ end }}";
    let text = text.replace("$.a.With .", "$.a.With (toString .)");
    let rendered = Template::parse("x", &text).unwrap().render(&data.into()).unwrap();
    let expected: String = (0..100).map(|turn| format!("[1][2][{turn}]")).collect();
    assert_eq!(String::from_utf8(rendered).unwrap(), expected);
    assert_eq!(GATHERED.load(Ordering::Relaxed), 2);
}
