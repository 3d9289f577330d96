// Command message renders commit messages with Go's text/template and Masterminds' sprig, on the data that Flux gives
// its templates.
//
// It reads results from the directory of the first argument, NAME.json, and cases from the files of the others: on each
// line the name of a result, a blank, and a template; a template that begins with a quotation mark is a JSON string.
// Empty lines and lines that start with a # are ignored. It prints a JSON table: each case with the resulting text or
// error.
//
// Usage: message DATA CASES… > testdata/message/table.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"text/template"

	"github.com/Masterminds/sprig/v3"

	"tagboat/hack/oracle/message/source"
)

// Case is a template, the name of the data, and the result.
type Case struct {
	Data     string `json:"data"`
	Template string `json:"template"`
	Text     string `json:"text,omitempty"`
	Error    string `json:"error,omitempty"`
}

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: message DATA CASES…"))
	}
	time.Local = time.UTC
	cases := []Case{}
	for _, file := range os.Args[2:] {
		cases = append(cases, read(file)...)
	}
	fmt.Printf("{\n\"go\": %q,\n\"cases\": [\n", runtime.Version())
	for i := range cases {
		answer(os.Args[1], &cases[i])
		comma := ","
		if i == len(cases)-1 {
			comma = ""
		}
		fmt.Println(line(cases[i]) + comma)
	}
	fmt.Print("]\n}\n")
}

// read reads a case file.
func read(path string) []Case {
	text, err := os.ReadFile(path)
	if err != nil {
		fail(err)
	}
	cases := []Case{}
	for number, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		data, text, found := strings.Cut(line, " ")
		if !found {
			fail(fmt.Errorf("%s:%d: data and template are separated by a blank", path, number+1))
		}
		if strings.HasPrefix(text, `"`) {
			if err := json.Unmarshal([]byte(text), &text); err != nil {
				fail(fmt.Errorf("%s:%d: %w", path, number+1, err))
			}
		}
		cases = append(cases, Case{Data: data, Template: text})
	}
	return cases
}

// answer renders a template on a fresh copy of the data, because templates may change them.
func answer(directory string, row *Case) {
	recorded, err := os.ReadFile(filepath.Join(directory, row.Data+".json"))
	if err != nil {
		fail(err)
	}
	data, err := source.Read(recorded)
	if err != nil {
		fail(fmt.Errorf("%s.json: %w", row.Data, err))
	}
	parsed, err := template.New("commit message").Funcs(sprig.HermeticTxtFuncMap()).Parse(row.Template)
	if err != nil {
		row.Error = err.Error()
		return
	}
	text := bytes.Buffer{}
	if err := parsed.Execute(&text, data); err != nil {
		row.Error = err.Error()
		return
	}
	row.Text = text.String()
}

func line(row Case) string {
	line := bytes.Buffer{}
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(row); err != nil {
		fail(err)
	}
	return strings.TrimSpace(line.String())
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
