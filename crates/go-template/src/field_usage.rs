//! Static analysis of a template: the fields and values of its data that it uses.
//!
//! Rendering shows only the fields of the branches that are taken; this analysis follows all branches. It tracks the
//! dot and each variable as a path of fields from the data, or as unknown. There are no false positives: a listed
//! field is used whenever its branch is taken. Fields of list elements and of function results are not listed.

use std::collections::HashSet;
use std::sync::Arc;

use crate::syntax::{Branch, BranchKind, Command, Name, Node, Pipe, Term, Variable};
use crate::template::Template;

/// The maximum length of a path that is followed.
/// A template that calls itself could extend its path for ever.
const MAX_PATH_LENGTH: usize = 16;

/// A field of the data that a template uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldUsage {
    /// The path of fields from the data to this field, this field included.
    pub path: Vec<Arc<str>>,
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
type FieldPath = Vec<Arc<str>>;

impl Template {
    /// Returns the fields of the data that the template and its callees use.
    ///
    /// The order is unspecified.
    #[must_use]
    pub fn field_usages(&self) -> Vec<FieldUsage> {
        self.analysis().usages
    }

    /// Returns the paths of the values that the template uses as a whole, callees included.
    ///
    /// A value is used as a whole if it is printed, iterated over, compared or passed to a function. A value of which
    /// only fields are used is not listed. Every value of the data that a rendering uses is part of one of these.
    #[must_use]
    pub fn used_values(&self) -> Vec<Vec<Arc<str>>> {
        self.analysis().used
    }

    fn analysis(&self) -> Analysis<'_> {
        let mut analysis =
            Analysis { template: self, usages: Vec::new(), used: Vec::new(), called: HashSet::new() };
        analysis.call(&self.name().into(), FieldPath::new());
        analysis
    }
}

struct Analysis<'t> {
    template: &'t Template,
    usages: Vec<FieldUsage>,
    /// Paths of the values that are used as a whole.
    used: Vec<FieldPath>,
    /// Templates that were analysed already, with the path of their data.
    called: HashSet<(Name, FieldPath)>,
}

/// The paths of the dot and the variables at a node.
struct Scope {
    dot: Option<FieldPath>,
    /// The variables; those of inner scopes come last.
    variables: Vec<(Arc<str>, Option<FieldPath>)>,
}

impl Analysis<'_> {
    fn call(&mut self, name: &Name, data: FieldPath) {
        if data.len() > MAX_PATH_LENGTH || !self.called.insert((name.clone(), data.clone())) {
            return;
        }
        let Some(nodes) = self.template.tree(name) else { return };
        let mut scope = Scope { dot: Some(data.clone()), variables: vec![("$".into(), Some(data))] };
        self.nodes(nodes, &mut scope);
    }

    fn nodes(&mut self, nodes: &[Node], scope: &mut Scope) {
        for node in nodes {
            match node {
                Node::Action { pipe, .. } => {
                    let value = self.pipe(pipe, scope);
                    if pipe.variables.is_empty() {
                        self.used.extend(value);
                    }
                }
                Node::Branch(branch) => self.branch(branch, scope),
                Node::Template { name, pipe: Some(pipe), .. } => {
                    if let Some(data) = self.pipe(pipe, scope) {
                        self.call(name, data);
                    }
                }
                Node::Template { .. } | Node::Text { .. } | Node::Break { .. } | Node::Continue { .. } => {}
            }
        }
    }

    fn branch(&mut self, branch: &Branch, scope: &mut Scope) {
        let variables = scope.variables.len();
        let value = self.pipe(&branch.pipe, scope);
        let inner = scope.variables.len();
        let dot = scope.dot.clone();
        match branch.kind {
            BranchKind::If => self.used.extend(value),
            BranchKind::With => scope.dot = value,
            BranchKind::Range => {
                self.used.extend(value);
                scope.dot = None;
                scope.variables[variables..].iter_mut().for_each(|(_, path)| *path = None);
            }
        }
        self.nodes(&branch.body, scope);
        scope.dot = dot;
        scope.variables.truncate(inner);
        if let Some(nodes) = &branch.otherwise {
            self.nodes(nodes, scope);
        }
        scope.variables.truncate(variables);
    }

    /// Analyses all parts of a pipe and returns the path of its value, if known.
    fn pipe(&mut self, pipe: &Pipe, scope: &mut Scope) -> Option<FieldPath> {
        let mut value = None;
        for (index, command) in pipe.commands.iter().enumerate() {
            let result = self.command(command, scope);
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
                scope.assign(&variable.name, value.as_ref());
            } else {
                scope.variables.push((Arc::clone(&variable.name), value.clone()));
            }
        }
        value
    }

    fn command(&mut self, command: &Command, scope: &mut Scope) -> Option<FieldPath> {
        let mut first = None;
        for (index, term) in command.terms.iter().enumerate() {
            let path = self.term(term, scope);
            if index == 0 && command.terms.len() == 1 {
                first = path;
            } else {
                self.used.extend(path);
            }
        }
        first
    }

    fn term(&mut self, term: &Term, scope: &mut Scope) -> Option<FieldPath> {
        match term {
            Term::Dot { .. } => scope.dot.clone(),
            Term::Field { at, fields } => {
                let path = scope.dot.clone();
                self.record(path, fields, *at)
            }
            Term::Variable(Variable { at, name, fields }) => {
                let path = scope.variable(name);
                self.record(path, fields, *at)
            }
            Term::Chain { at, head, fields } => {
                let path = self.term(head, scope);
                self.record(path, fields, *at)
            }
            Term::Pipe(pipe) => {
                let variables = scope.variables.len();
                let path = self.pipe(pipe, scope);
                scope.variables.truncate(variables);
                path
            }
            Term::Bool { .. }
            | Term::Identifier { .. }
            | Term::Nil { .. }
            | Term::Number { .. }
            | Term::String { .. } => None,
        }
    }

    /// Records the fields that are read from the value at the end of a path.
    fn record(&mut self, path: Option<FieldPath>, fields: &[Arc<str>], at: usize) -> Option<FieldPath> {
        let mut path = path?;
        let Some(first) = fields.first() else { return Some(path) };
        path.extend(fields.iter().cloned());
        let (line, column) = self.template.line_and_column(self.start_of(first, at));
        self.usages.push(FieldUsage { path: path.clone(), own: fields.len(), line, column });
        Some(path)
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

impl Scope {
    fn variable(&self, name: &str) -> Option<FieldPath> {
        let found = self.variables.iter().rev().find(|(known, _)| **known == *name);
        found.and_then(|(_, path)| path.clone())
    }

    /// Records an assignment.
    ///
    /// It may be in a branch that is not taken, so the variable stays known only if its path does not change.
    fn assign(&mut self, name: &str, value: Option<&FieldPath>) {
        let found = self.variables.iter_mut().rev().find(|(known, _)| **known == *name);
        if let Some((_, path)) = found
            && path.as_ref() != value
        {
            *path = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usages_of(text: &str) -> Vec<String> {
        let template = Template::parse("t", text).unwrap();
        let usages = template.field_usages().into_iter();
        usages.map(|field| format!("{}:{} {}", field.line, field.column, field.path.join("."))).collect()
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
            assert_eq!(usages_of(text), expected, "{text}");
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
            let used: Vec<String> = used.iter().map(|path| path.join(".")).collect();
            assert_eq!(used, expected, "{text}");
        }
    }

    #[test]
    fn a_recursive_template_is_followed_to_the_maximum_path_length() {
        let text = "{{ define \"x\" }}{{ template \"x\" .A }}{{ end }}{{ template \"x\" . }}";
        assert_eq!(usages_of(text).len(), MAX_PATH_LENGTH + 1);
    }
}
