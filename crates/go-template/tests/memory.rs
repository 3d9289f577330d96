//! Bounds the memory growth of the process under hostile templates.
//!
//! This is a test binary of its own, because the peak is that of the process.

#![cfg(test)]

use std::fs;

use tagboat_go_template::{Limits, Map, Template, Value};

/// The maximum growth of the process in KiB, over all templates one after the other.
const MAX_GROWTH: usize = 64 * 1024;

/// Reads a value in KiB from `/proc/self/status`.
fn kibibytes(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// Returns the result of rendering a template.
fn end_of(text: &str, data: &Value) -> String {
    let limits = Limits { steps: 20_000_000, output: 4 << 20, value: 2 << 20, ..Limits::default() };
    let rendered = Template::parse("x", text).and_then(|template| template.render_within(data, limits));
    match rendered {
        Ok(bytes) => format!("{} bytes", bytes.len()),
        Err(error) => error.to_string(),
    }
}

/// The values of a template grew with its data to gigabytes.
#[test]
fn no_template_makes_the_process_grow_beyond_its_bound() {
    let entries = (0..20_000).map(|i| (format!("{i:05}").into(), Value::int(i)));
    let data = Value::from(Map::dict([
        ("large".into(), Map::dict(entries).into()),
        ("text".into(), "a".repeat(1 << 20).into()),
    ]));
    let nested = |open: &str, body: &str, levels: usize| {
        format!("{}{body}{}", open.repeat(levels), "{{ end }}".repeat(levels))
    };
    let templates = [
        r#"{{$d := dict}}{{range until 600}}{{$_ := set $d (toString .) (splitList "" (repeat 1000000 "a"))}}{{end}}"#.to_owned(),
        r#"{{$d := dict}}{{range until 600}}{{$_ := set $d (toString .) (splitList "" (repeat 20000 "a"))}}{{end}}"#.to_owned(),
        r#"{{$d := dict}}{{range until 1000000}}{{$_ := set $d (toString .) .}}{{end}}"#.to_owned(),
        r#"{{$l := list}}{{range until 100}}{{$l = append $l (repeat 1000000 "a")}}{{end}}"#.to_owned(),
        r#"{{$l := list}}{{range until 100}}{{$l = prepend $l (until 100000)}}{{end}}"#.to_owned(),
        r#"{{$l := until 100000}}{{range until 40}}{{$l = concat $l $l}}{{end}}"#.to_owned(),
        r#"{{$l := list 1 2}}{{range until 40}}{{$l = list $l $l}}{{end}}{{deepCopy $l | len}}"#.to_owned(),
        r#"{{$d := dict}}{{range until 30}}{{$d = dict "a" $d "b" $d}}{{end}}{{deepCopy $d | len}}"#.to_owned(),
        r#"{{$d := dict}}{{range until 40000}}{{$_ := set $d (print "b" .) .}}{{end}}{{$_ := set $d "a" $d}}{{$d}}"#.to_owned(),
        r#"{{$d := dict}}{{range until 40000}}{{$_ := set $d (print "b" .) .}}{{end}}{{$_ := set $d "a" $d}}{{toJson $d}}"#.to_owned(),
        r#"{{$d := dict}}{{range until 40000}}{{$_ := set $d (print "b" .) .}}{{end}}{{$_ := set $d "a" $d}}{{deepCopy $d}}"#.to_owned(),
        r#"{{$d := dict}}{{$_ := set $d "a" $d}}{{range until 20000}}{{$_ := set $d (print "b" .) .}}{{end}}{{merge $d $d | len}}"#.to_owned(),
        r#"{{range until 40000}}{{$d := dict "a" (repeat 1000 "a")}}{{$_ := set $d "d" $d}}{{end}}"#.to_owned(),
        r#"{{regexFindAll "a" (repeat 400000 "a") -1 | len}}"#.to_owned(),
        r#"{{regexSplit "" (repeat 100000 "a") -1 | len}}"#.to_owned(),
        r#"{{range 40000}}{{regexMatch (printf "\\pL{15}%d" .) "ä"}}{{end}}"#.to_owned(),
        r#"{{range 200}}{{regexMatch (printf "(%d" .) (repeat 1000000 "a")}}{{end}}"#.to_owned(),
        r#"{{range 200}}{{regexMatch (print (repeat 1000000 "(") .) "a"}}{{end}}"#.to_owned(),
        r#"{{fromJson (printf "[%s1]" (repeat 500000 "1,")) | len}}"#.to_owned(),
        r#"{{fromJson (printf "[%s1]" (repeat 600000 "{},")) | len}}"#.to_owned(),
        r#"{{fromJson (printf "[%s1]" (repeat 600000 "[],")) | len}}"#.to_owned(),
        r#"{{fromJson (printf "[%s1]" (repeat 600000 "\"\",")) | len}}"#.to_owned(),
        r#"{{split "a" (repeat 2000000 "a") | len}}"#.to_owned(),
        r#"{{splitn "a" 1000000 (repeat 2000000 "a") | len}}"#.to_owned(),
        r#"{{sortAlpha (until 300000) | len}}{{toStrings (until 300000) | len}}"#.to_owned(),
        r#"{{chunk 1 (until 200000) | len}}"#.to_owned(),
        r#"{{seq 1 1000000 | len}}{{until 2000000 | len}}{{untilStep 0 2000000 1 | len}}"#.to_owned(),
        format!(r#"{{{{$x := repeat 1000000 "a"}}}}{{{{ quote {} }}}}"#, "$x ".repeat(200)),
        format!("{{{{ list {} }}}}", r#"(repeat 1000000 "a") "#.repeat(200)),
        "{{.}}".repeat(25_000),
        "{{print .a.b (1) | print}}".repeat(5_000),
        nested(r#"{{with repeat 1000000 "a"}}"#, "x", 90),
        nested(r#"{{range $.large}}"#, "x", 90),
        format!("{}x", r#"{{$x := repeat 1000000 "a"}}"#.repeat(200)),
        r#"{{define "a"}}{{template "a" (repeat 1000000 "a")}}{{end}}{{template "a"}}"#.to_owned(),
        r#"{{html (repeat 2000000 "\"") | len}}{{printf "%q" (repeat 2000000 "\x00") | len}}"#.to_owned(),
        r#"{{range 100}}{{printf "%1000000d" 1}}{{end}}"#.to_owned(),
        r#"{{$l := list}}{{range until 300000}}{{$l = append (list) .}}{{end}}{{keys $.large $.large $.large $.large | len}}"#.to_owned(),
        r#"{{$l := splitList "" (printf "%20000d" 1)}}{{range 1000}}{{$l = concat $l (rest $l) | uniq}}{{end}}"#.to_owned(),
        r#"{{range $i, $c := splitList "" (repeat 20000 "a")}}{{$_ := set $.large (print $c $i) (repeat 5000 $c)}}{{end}}"#.to_owned(),
        r#"{{$d := dict}}{{range $.large}}{{$d = set (deepCopy $d) (print "k" .) (list $.text $d)}}{{end}}"#.to_owned(),
    ];
    let before = kibibytes("VmRSS:");
    for text in &templates {
        let end = end_of(text, &data);
        let grown = kibibytes("VmHWM:").saturating_sub(before);
        println!("{grown:>8} KiB {text:.100}\n             {end:.200}");
        assert!(grown < MAX_GROWTH, "{grown} KiB: {text:.200}: {end}");
    }
}
