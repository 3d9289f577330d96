//! Generates random templates from a grammar; most of them are valid.

use crate::signatures::SIGNATURES;

/// A template generator; equal seeds give equal templates.
pub(crate) struct Grammar {
    state: u64,
    variables: usize,
    depth: usize,
}

const FIELDS: &[(&str, char)] = &[
    (".Int", 'i'),
    (".Minus", 'i'),
    (".Int8", 'a'),
    (".Uint8", 'a'),
    (".Uint64", 'a'),
    (".Float", 'f'),
    (".Complex", 'a'),
    (".Text", 's'),
    (".Accents", 's'),
    (".Texts", 'l'),
    (".Ints", 'l'),
    (".Points", 'l'),
    (".Anys", 'l'),
    (".Any", 'd'),
    (".Any.dict", 'd'),
    (".Any.name", 's'),
    (".Any.missing", 'a'),
    (".Any.none", 'a'),
    (".Counts", 'a'),
    (".Counts.a", 'i'),
    (".ByInt", 'a'),
    (".ByPoint", 'a'),
    (".NoMap", 'd'),
    (".NoInts", 'l'),
    (".NoPoint", 'a'),
    (".Point", 'a'),
    (".Point.X", 'i'),
    (".ToPoint.Y", 'i'),
    (".Named", 'a'),
    (".Named.Name", 's'),
    (".Nothing", 'a'),
    (".Number", 'a'),
    (".Holder.Name", 's'),
    (".Month", 'a'),
    (".Yes", 'b'),
    (".No", 'b'),
    (".Label", 's'),
    (".Shout", 's'),
    (".Self.Int", 'i'),
    ("(.Greet \"x\")", 's'),
    ("(.Sum 1 2)", 'i'),
    (".Foo", 'a'),
    (".Point.Z", 'a'),
];

const FLUX_FIELDS: &[(&str, char)] = &[
    (".AutomationObject", 'a'),
    (".AutomationObject.Name", 's'),
    (".Changed.Changes", 'l'),
    (".Changed.Objects", 'a'),
    (".Changed.FileChanges", 'a'),
    (".Updated.Images", 'l'),
    (".Values.cluster", 's'),
    (".Values.missing", 'a'),
    (".Values", 'a'),
    (".Changed", 'a'),
    (".Updated.Foo", 'a'),
];

const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "hello world",
    "Foo_Bar-baz9",
    "  x\\ty ",
    "äöü",
    "HTTPServer20x",
    "a,b,,c",
    "1",
    "-7.5",
    "0x1f",
    "true",
    "ghcr.io/org/app:v1.2.3",
    "a\\nb\\nc",
    "<b>&'\\\"",
    "%d%s%v",
    "aGVsbG8=",
    "/a/../b//c.tar.gz",
    "中文X",
];
const NUMBERS: &[&str] = &["0", "1", "2", "3", "5", "-1", "-4", "10", "17", "100", "'a'", "0x1F", "1_0"];
const FLOATS: &[&str] = &["0.0", "1.5", "-2.25", "1e3", "1e-7", "3.0", "123456.789", "1e21", "0.1", "-0.0"];
const EXPRESSIONS: &[&str] = &[
    "a",
    "[a-c]+",
    "^.",
    "x*",
    "(a)(b)?",
    "\\\\d+",
    "[^a-z]",
    "(?i)HELLO",
    "\\\\bw",
    "o|l",
    "(",
    "[",
    "a**",
    "\\\\w+\\\\s",
    "",
    "$",
    "(?P<n>.)",
    "é",
    "[[:upper:]]",
    "a{2,1}",
    "\\\\pL+",
    "a{1,2}?",
    "\\\\Qa.b\\\\E",
    "(?m)^.$",
    "\\\\x41",
];
const JSONS: &[&str] = &[
    "{}",
    "[1,2,{\\\"a\\\":null}]",
    "\\\"x\\\"",
    "1.5e3",
    "tru",
    "{\\\"a\\\":1,}",
    "[1 2]",
    "null",
    "-0",
    "{\\\"b\\\":[],\\\"a\\\":{}}",
    "\\\"\\\\u00e4\\\"",
    "",
    "[",
    "{\\\"a\\\"",
    "nul",
];
const URLS: &[&str] = &[
    "http://u:p@h.de:80/a%20b?q=1#f",
    "/a/b",
    "mailto:x@y",
    "http://[::1]/",
    "//h",
    ":x",
    "http://h:x/",
    "a:b/c",
    "?q",
    "#f",
    "http://%41/",
    "http://h/%zz",
    "HTTP://H/A b",
    "*",
];
const LAYOUTS: &[&str] = &[
    "2006-01-02",
    "2024-02-29",
    "Jan _2 15:04:05",
    "Mar  4 05:06:07",
    "2006-01-02T15:04:05Z07:00",
    "2024-13-01",
    "2024-01-02T03:04:05+02:00",
    "3:04PM",
    "11:59PM",
    "MST",
    "CET",
    "2006 002",
    "2024 366",
    "05.000",
    "59.999",
];
const CONSTRAINTS: &[&str] =
    &["^1.2", ">=1.0 <2", "~1.2.3-0", "*", "1 - 2", "foo", "!=1.2.3", "1.x || >3", "=>1,<"];
const VERSIONS: &[&str] = &["1.2.3", "v1.2", "2.0.0-rc.1+b", "01.2.3", "x", "1.2.3-01", "1", "0.0.0-0"];
const DURATIONS: &[&str] = &["1h2m", "90s", "-36h", "5", "x", "1.5h", "400h", "20000h", "1us"];

impl Grammar {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, variables: 0, depth: 0 }
    }

    /// Returns a pseudo-random number below a bound (xorshift).
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).expect("31 bits") % bound
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices[self.below(choices.len())]
    }

    /// The name of the data.
    pub(crate) fn data(&mut self) -> &'static str {
        match self.below(10) {
            0 => "nil",
            1..=2 => "flux",
            _ => "kinds",
        }
    }

    pub(crate) fn template(&mut self, data: &str) -> String {
        self.variables = 0;
        self.depth = 0;
        let mut text = String::new();
        for _ in 0..1 + self.below(3) {
            text += &self.node(data);
        }
        // Damages a byte of the text now and then.
        if !text.is_empty() && self.chance(8) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let at = places[self.below(places.len())];
            if self.chance(50) {
                text.remove(at);
            } else {
                let slip = self.pick(&[
                    "(", ")", "}}", "{{", ".", "|", "\"", "$", " ", "-", "end", "1", "é", "\n", "`", "'",
                ]);
                text.insert_str(at, slip);
            }
        }
        text
    }

    fn node(&mut self, data: &str) -> String {
        self.depth += 1;
        let known = self.variables;
        let choice = if self.depth > 3 { self.below(6) } else { self.below(12) };
        let trim = |grammar: &mut Self| if grammar.chance(10) { ("{{- ", " -}}") } else { ("{{ ", " }}") };
        let (open, close) = trim(self);
        let text = match choice {
            0 => self.pick(&["text", " \n ", "a}}b", "x\n", "", "- "]).to_owned(),
            1..=4 => format!("{open}{}{close}", self.pipe('a', data)),
            5 => {
                let value = self.pipe('a', data);
                self.variables += 1;
                let text = format!("{open}$v{} := {value}{close}", self.variables);
                self.depth -= 1;
                return text + &self.node(data);
            }
            6 => {
                let condition = self.pipe('a', data);
                let (body, otherwise) = (self.node(data), self.node(data));
                format!("{open}if {condition}{close}{body}{{{{ else }}}}{otherwise}{{{{ end }}}}")
            }
            7 => {
                let value = self.pipe('a', data);
                let body = self.node(data);
                format!("{open}with {value}{close}{{{{ . }}}}{body}{{{{ end }}}}")
            }
            8..=9 => {
                let value = self.pipe('l', data);
                let body = self.node(data);
                let leave = self.pick(&[
                    "",
                    "",
                    "",
                    "{{ break }}",
                    "{{ continue }}",
                    "{{ if . }}{{ break }}{{ end }}",
                ]);
                let (i, k) = (self.variables + 1, self.variables + 2);
                let variables = match self.below(3) {
                    0 => String::new(),
                    1 => format!("$v{i} := "),
                    _ => format!("$v{i}, $v{k} := "),
                };
                let shown =
                    if variables.is_empty() { "{{ . }}".to_owned() } else { format!("{{{{ $v{i} }}}}") };
                format!(
                    "{open}range {variables}{value}{close}{shown}{leave}{body},{{{{ else }}}}none{{{{ end }}}}"
                )
            }
            10 if self.variables > 0 => {
                let variable = 1 + self.below(self.variables);
                let value = self.pipe('a', data);
                format!("{open}$v{variable} = {value}{close}")
            }
            _ => {
                let value = self.pipe('a', data);
                let body = self.node(data);
                let name = self.below(3);
                format!("{{{{ block \"b{name}\" {value} }}}}{body}{{{{ end }}}}")
            }
        };
        self.depth -= 1;
        self.variables = known;
        text
    }

    fn pipe(&mut self, kind: char, data: &str) -> String {
        let mut text = self.term(kind, data, 0);
        while self.chance(15) {
            let (name, signature) = SIGNATURES[self.below(SIGNATURES.len())];
            let arguments = self.arguments(signature, data, 1, true);
            text += &format!(" | {name}{arguments}");
        }
        text
    }

    fn arguments(&mut self, signature: &str, data: &str, level: usize, leaves_last: bool) -> String {
        let (fixed, repeated) = signature.split_once('*').unwrap_or((signature, ""));
        let mut kinds: Vec<char> = fixed.chars().collect();
        if !repeated.is_empty() {
            for _ in 0..self.below(4) {
                kinds.extend(repeated.chars());
            }
        }
        if leaves_last {
            kinds.pop();
        }
        if self.chance(2) {
            kinds.push('a');
        }
        let mut text = String::new();
        for kind in kinds {
            let kind = if self.chance(4) { 'a' } else { kind };
            text += " ";
            text += &self.argument(kind, data, level);
        }
        text
    }

    fn argument(&mut self, kind: char, data: &str, level: usize) -> String {
        let text = self.term(kind, data, level);
        if text.contains(' ') && !text.starts_with(['"', '(']) { format!("({text})") } else { text }
    }

    fn term(&mut self, kind: char, data: &str, level: usize) -> String {
        if level < 3 && self.chance(if level == 0 { 75 } else { 25 }) && "asilfdb".contains(kind) {
            let (name, signature) = SIGNATURES[self.below(SIGNATURES.len())];
            let call = format!("{name}{}", self.arguments(signature, data, level + 1, false));
            return match kind {
                's' if self.chance(70) => format!("toString ({call})"),
                'i' if self.chance(70) => format!("int ({call})"),
                'f' if self.chance(70) => format!("float64 ({call})"),
                'b' => format!("not ({call})"),
                'l' if self.chance(60) => format!("list ({call}) {}", self.argument('a', data, level + 1)),
                'd' if self.chance(60) => format!("dict \"k\" ({call})"),
                _ => call,
            };
        }
        if self.variables > 0 && self.chance(15) {
            return format!("$v{}", 1 + self.below(self.variables));
        }
        if self.chance(25) {
            let fields = if data == "flux" { FLUX_FIELDS } else { FIELDS };
            let fitting: Vec<&str> =
                fields.iter().filter(|(_, of)| kind == 'a' || *of == kind).map(|(name, _)| *name).collect();
            if data != "nil" && !fitting.is_empty() {
                let field = self.pick(&fitting);
                return if field.starts_with('.') { format!("${field}") } else { field.replace("(.", "($.") };
            }
        }
        self.constant(kind)
    }

    fn constant(&mut self, kind: char) -> String {
        let quoted = |text: &str| format!("\"{text}\"");
        match kind {
            's' => quoted(self.pick(TEXTS)),
            'i' => self.pick(NUMBERS).to_owned(),
            'f' => self.pick(FLOATS).to_owned(),
            'b' => self.pick(&["true", "false"]).to_owned(),
            'l' => self
                .pick(&[
                    "(list)",
                    "(list 1 2)",
                    "(list \"b\" \"a\")",
                    "(until 4)",
                    "(splitList \",\" \"c,a,b\")",
                ])
                .to_owned(),
            'd' => self
                .pick(&[
                    "(dict)",
                    "(dict \"a\" 1)",
                    "(dict \"k\" (dict \"x\" 1))",
                    "(dict \"b\" \"\" \"a\" (list 1))",
                ])
                .to_owned(),
            'r' => quoted(self.pick(EXPRESSIONS)),
            'j' => quoted(self.pick(JSONS)),
            'u' => quoted(self.pick(URLS)),
            't' => quoted(self.pick(LAYOUTS)),
            'n' => quoted(self.pick(DURATIONS)),
            'c' => quoted(self.pick(CONSTRAINTS)),
            'v' => quoted(self.pick(VERSIONS)),
            'p' => self.format(),
            _ => {
                let kind = ['s', 'i', 'f', 'b', 'l', 'd', '.', 'n'][self.below(8)];
                match kind {
                    '.' => self.pick(&["nil", "1i", "\"x\"", "'y'"]).to_owned(),
                    kind => self.constant(kind),
                }
            }
        }
    }

    /// A format of `printf`.
    fn format(&mut self) -> String {
        let mut text = String::from("\"");
        for _ in 0..1 + self.below(3) {
            text += self.pick(&["", "a", " ", "|"]);
            text.push('%');
            for _ in 0..self.below(3) {
                text += self.pick(&["", "+", "-", "#", "0", " "]);
            }
            text += self.pick(&["", "", "", "5", "12", "*", "[1]", "[2]"]);
            text += self.pick(&["", "", "", ".2", ".0", ".", ".*", ".9"]);
            text += self.pick(&[
                "v", "v", "s", "d", "q", "x", "X", "t", "f", "g", "e", "T", "c", "U", "b", "o", "O", "E",
                "G", "%", "z", "F",
            ]);
        }
        text + "\""
    }
}
