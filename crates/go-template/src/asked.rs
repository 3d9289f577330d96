//! Static analysis of a template: the fields and values of its data that it uses.
//!
//! Rendering shows only the fields of the branches that are taken; this analysis follows all branches. It tracks the
//! dot and each variable as a path of fields from the data, or as unknown. There are no false positives: a listed
//! field is used whenever its branch is taken. Fields of list elements and of function results are not listed.

use std::collections::HashSet;
use std::sync::Arc;

use crate::syntax::{Branch, BranchKind, Command, Name, Node, Pipe, Term, Variable};
use crate::template::Template;

/// The longest path that is followed: a template that calls itself could extend its path for ever.
const LONGEST_WAY: usize = 16;

/// A field of the data that a template uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedField {
    /// The path of fields from the data to this field, this field included.
    pub way: Vec<Arc<str>>,
    /// The number of trailing fields that are written at this position.
    ///
    /// The fields before them led to the dot or the variable.
    pub own: usize,
    /// The line of the template, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 0, as in errors.
    pub column: usize,
}

/// A path of fields from the data to a value.
type Way = Vec<Arc<str>>;

impl Template {
    /// Returns the fields of the data that the template and its callees use.
    ///
    /// The order is unspecified.
    #[must_use]
    pub fn asked_fields(&self) -> Vec<AskedField> {
        self.asking().asked
    }

    /// Returns the paths of the values that the template uses as a whole, callees included.
    ///
    /// A value is used as a whole if it is printed, iterated over, compared or passed to a function. A value of which
    /// only fields are used is not listed. Every value of the data that a rendering uses is part of one of these.
    #[must_use]
    pub fn used_values(&self) -> Vec<Vec<Arc<str>>> {
        self.asking().used
    }

    fn asking(&self) -> Asking<'_> {
        let mut asking =
            Asking { template: self, asked: Vec::new(), used: Vec::new(), called: HashSet::new() };
        asking.call(&self.name().into(), Way::new());
        asking
    }
}

struct Asking<'t> {
    template: &'t Template,
    asked: Vec<AskedField>,
    /// Paths of the values that are used as a whole.
    used: Vec<Way>,
    /// Templates that were analysed already, with the path of their data.
    called: HashSet<(Name, Way)>,
}

/// The paths of the dot and the variables at a node.
struct Known {
    dot: Option<Way>,
    /// The variables; those of inner scopes come last.
    variables: Vec<(Arc<str>, Option<Way>)>,
}

impl Asking<'_> {
    fn call(&mut self, name: &Name, data: Way) {
        if data.len() > LONGEST_WAY || !self.called.insert((name.clone(), data.clone())) {
            return;
        }
        let Some(nodes) = self.template.tree(name) else { return };
        let mut known = Known { dot: Some(data.clone()), variables: vec![("$".into(), Some(data))] };
        self.nodes(nodes, &mut known);
    }

    fn nodes(&mut self, nodes: &[Node], known: &mut Known) {
        for node in nodes {
            match node {
                Node::Action { pipe, .. } => {
                    let value = self.pipe(pipe, known);
                    if pipe.variables.is_empty() {
                        self.used.extend(value);
                    }
                }
                Node::Branch(branch) => self.branch(branch, known),
                Node::Template { name, pipe: Some(pipe), .. } => {
                    if let Some(data) = self.pipe(pipe, known) {
                        self.call(name, data);
                    }
                }
                Node::Template { .. } | Node::Text { .. } | Node::Break { .. } | Node::Continue { .. } => {}
            }
        }
    }

    fn branch(&mut self, branch: &Branch, known: &mut Known) {
        let variables = known.variables.len();
        let value = self.pipe(&branch.pipe, known);
        let inner = known.variables.len();
        let dot = known.dot.clone();
        match branch.kind {
            BranchKind::If => self.used.extend(value),
            BranchKind::With => known.dot = value,
            BranchKind::Range => {
                self.used.extend(value);
                known.dot = None;
                known.variables[variables..].iter_mut().for_each(|(_, way)| *way = None);
            }
        }
        self.nodes(&branch.body, known);
        known.dot = dot;
        known.variables.truncate(inner);
        if let Some(nodes) = &branch.otherwise {
            self.nodes(nodes, known);
        }
        known.variables.truncate(variables);
    }

    /// Analyses all parts of a pipe and returns the path of its value, if known.
    fn pipe(&mut self, pipe: &Pipe, known: &mut Known) -> Option<Way> {
        let mut value = None;
        for (index, command) in pipe.commands.iter().enumerate() {
            let result = self.command(command, known);
            // A value that is piped on becomes an argument of a function.
            if index == 0 && pipe.commands.len() == 1 {
                value = result;
            } else {
                self.used.extend(result);
            }
        }
        for variable in &pipe.variables {
            if pipe.is_assignment {
                // The assigned value may not be followed from here on.
                self.used.extend(value.clone());
                known.assign(&variable.name, value.as_ref());
            } else {
                known.variables.push((Arc::clone(&variable.name), value.clone()));
            }
        }
        value
    }

    fn command(&mut self, command: &Command, known: &mut Known) -> Option<Way> {
        let mut first = None;
        for (index, term) in command.terms.iter().enumerate() {
            let way = self.term(term, known);
            if index == 0 && command.terms.len() == 1 {
                first = way;
            } else {
                self.used.extend(way);
            }
        }
        first
    }

    fn term(&mut self, term: &Term, known: &mut Known) -> Option<Way> {
        match term {
            Term::Dot { .. } => known.dot.clone(),
            Term::Field { at, fields } => {
                let way = known.dot.clone();
                self.ask(way, fields, *at)
            }
            Term::Variable(Variable { at, name, fields }) => {
                let way = known.variable(name);
                self.ask(way, fields, *at)
            }
            Term::Chain { at, head, fields } => {
                let way = self.term(head, known);
                self.ask(way, fields, *at)
            }
            Term::Pipe(pipe) => {
                let variables = known.variables.len();
                let way = self.pipe(pipe, known);
                known.variables.truncate(variables);
                way
            }
            Term::Bool { .. }
            | Term::Identifier { .. }
            | Term::Nil { .. }
            | Term::Number { .. }
            | Term::String { .. } => None,
        }
    }

    /// Records the fields that are read from the value at the end of a path.
    fn ask(&mut self, way: Option<Way>, fields: &[Arc<str>], at: usize) -> Option<Way> {
        let mut way = way?;
        let Some(first) = fields.first() else { return Some(way) };
        way.extend(fields.iter().cloned());
        let (line, column) = self.template.line_and_column(self.start_of(first, at));
        self.asked.push(AskedField { way: way.clone(), own: fields.len(), line, column });
        Some(way)
    }

    /// Returns the position of the first field.
    ///
    /// The parser's position of a chain of several fields is that of the second one.
    fn start_of(&self, field: &str, at: usize) -> usize {
        let text = self.template.text();
        let field = format!(".{field}");
        if text[at..].starts_with(&field) {
            return at;
        }
        text[..at].rfind(&field).or_else(|| text[at..].find(&field).map(|behind| at + behind)).unwrap_or(at)
    }
}

impl Known {
    fn variable(&self, name: &str) -> Option<Way> {
        let found = self.variables.iter().rev().find(|(known, _)| **known == *name);
        found.and_then(|(_, way)| way.clone())
    }

    /// Records an assignment.
    ///
    /// It may be in a branch that is not taken, so the variable stays known only if its path does not change.
    fn assign(&mut self, name: &str, value: Option<&Way>) {
        let found = self.variables.iter_mut().rev().find(|(known, _)| **known == *name);
        if let Some((_, way)) = found
            && way.as_ref() != value
        {
            *way = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Vec<String> {
        let template = Template::parse("t", text).unwrap();
        let asked = template.asked_fields().into_iter();
        asked.map(|field| format!("{}:{} {}", field.line, field.column, field.way.join("."))).collect()
    }

    #[test]
    fn every_branch_is_followed() {
        for (text, expected) in [
            ("{{ .A.B }}", &["1:3 A.B"][..]),
            ("{{ $.A.B.C }}", &["1:4 A.B.C"]),
            ("{{ if false }}\n{{ .A }}{{ else }} {{ .B }}{{ end }}", &["2:3 A", "2:22 B"]),
            ("{{ with .A }}{{ .B }}{{ else }}{{ .C }}{{ end }}", &["1:8 A", "1:16 A.B", "1:34 C"]),
            ("{{ with $a := .A }}{{ $a.B }}{{ $.C }}{{ end }}", &["1:14 A", "1:24 A.B", "1:33 C"]),
            ("{{ range .A }}{{ .B }}{{ $.C }}{{ else }}{{ .D }}{{ end }}", &["1:9 A", "1:26 C", "1:44 D"]),
            ("{{ range $k, $v := .A }}{{ $v.B }}{{ end }}", &["1:19 A"]),
            ("{{ len .A | printf \"%d\" }}{{ (.B).C }}", &["1:7 A", "1:30 B", "1:33 B.C"]),
            ("{{ (index .A 0).B }}", &["1:10 A"]),
            (
                "{{ define \"x\" }}{{ .B }}{{ $.C }}{{ end }}{{ template \"x\" .A }}",
                &["1:58 A", "1:19 A.B", "1:28 A.C"],
            ),
            ("{{ define \"x\" }}{{ .B }}{{ end }}", &[]),
            ("{{ define \"x\" }}{{ .B }}{{ template \"x\" .B }}{{ end }}", &[]),
            (
                "{{ $x := . }}{{ $x.A }}{{ if .C }}{{ $x = .B }}{{ end }}{{ $x.D }}",
                &["1:18 A", "1:29 C", "1:42 B"],
            ),
            ("{{ .A.B \"x\" .C }}", &["1:3 A.B", "1:12 C"]),
            ("no template", &[]),
        ] {
            assert_eq!(asked(text), expected, "{text}");
        }
    }

    #[test]
    fn values_that_are_used_as_a_whole_are_listed() {
        for (text, expected) in [
            ("{{ . }}", &[""][..]),
            ("{{ .A.B }}", &["A.B"]),
            ("{{ $.A | toJson }}", &["A"]),
            ("{{ printf \"%v\" $ .A }}", &["", "A"]),
            ("{{ if .A }}{{ end }}{{ range .B }}{{ . }}{{ .C }}{{ end }}", &["A", "B"]),
            ("{{ with .A }}{{ .B }}{{ else }}{{ .C }}{{ end }}", &["A.B", "C"]),
            ("{{ $x := .A }}{{ $x.B }}", &["A.B"]),
            ("{{ $x := .A }}{{ if true }}{{ $x = .B }}{{ end }}{{ $x.C }}", &["B"]),
            ("{{ (.A).B }}{{ (index .C 0).D }}", &["A.B", "C"]),
            ("{{ define \"x\" }}{{ . }}{{ end }}{{ template \"x\" .A }}", &["A"]),
            ("{{ define \"x\" }}{{ .B }}{{ end }}{{ template \"x\" . }}", &["B"]),
            ("{{ .A.B \"x\" .C }}", &["A.B", "C"]),
        ] {
            let used = Template::parse("t", text).unwrap().used_values();
            let used: Vec<String> = used.iter().map(|way| way.join(".")).collect();
            assert_eq!(used, expected, "{text}");
        }
    }

    #[test]
    fn a_template_that_calls_itself_comes_to_an_end() {
        let text = "{{ define \"x\" }}{{ template \"x\" .A }}{{ end }}{{ template \"x\" . }}";
        assert_eq!(asked(text).len(), LONGEST_WAY + 1);
    }
}
