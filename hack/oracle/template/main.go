// Command template renders templates with Go's text/template and Masterminds' sprig, as Flux does.
//
// Without flags it reads the case files that it is given and prints a JSON table: each case with the text or the
// error that came out, and the versions of Go and of the modules that were asked. A case file has a case on each line:
// the name of the data, a blank, and the template; one that begins with a quotation mark is a JSON string. Empty lines
// and lines that begin with a # are passed over.
//
// With -serve it answers requests: a JSON object with data and template on each line of standard input, one with
// text or error on each line of standard output.
//
// Usage: template CASES… > testdata/template/table.json
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"text/template"

	"github.com/Masterminds/sprig/v3"

	"tagboat/hack/oracle/template/sample"
	"tagboat/hack/oracle/template/source"
)

// name is what Flux calls the template.
const name = "commit message"

// Case is a template, the name of the data, and what came out.
type Case struct {
	File     string `json:"file,omitempty"`
	Data     string `json:"data"`
	Template string `json:"template"`
	Text     string `json:"text,omitempty"`
	// Bytes stands in the place of Text when that is no UTF-8.
	Bytes []byte `json:"bytes,omitempty"`
	Error string `json:"error,omitempty"`
}

func main() {
	serves := flag.Bool("serve", false, "answer requests on standard input")
	flag.Parse()
	time.Local = time.UTC
	if *serves {
		serve()
		return
	}
	cases := []Case{}
	for _, file := range flag.Args() {
		cases = append(cases, read(file)...)
	}
	versions, err := json.Marshal(versions())
	if err != nil {
		fail(err)
	}
	fmt.Printf("{\n\"versions\": %s,\n\"cases\": [\n", versions)
	for i := range cases {
		answer(&cases[i])
		comma := ","
		if i == len(cases)-1 {
			comma = ""
		}
		fmt.Println(line(cases[i]) + comma)
	}
	fmt.Print("]\n}\n")
}

func serve() {
	// A dict in a circle ends the program; let it be soon.
	debug.SetMaxStack(1 << 24)
	debug.SetTraceback("none")
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		request := Case{}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			fail(err)
		}
		answer(&request)
		request.Template = ""
		fmt.Fprintln(out, line(request))
		if err := out.Flush(); err != nil {
			fail(err)
		}
	}
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
		cases = append(cases, Case{File: filepath.Base(path), Data: data, Template: text})
	}
	return cases
}

// answer renders a template.
func answer(row *Case) {
	parsed, err := template.New(name).Funcs(sprig.HermeticTxtFuncMap()).Parse(row.Template)
	if err != nil {
		row.Error = err.Error()
		return
	}
	text := bytes.Buffer{}
	if err := parsed.Execute(&text, data(row.Data)); err != nil {
		row.Error = err.Error()
		return
	}
	if utf8.Valid(text.Bytes()) {
		row.Text = text.String()
	} else {
		row.Bytes = text.Bytes()
	}
}

// data returns the data of a name, anew each time: templates may change it.
func data(name string) any {
	switch name {
	case "flux":
		return source.Sample()
	case "flux-pointer":
		data := source.Sample()
		return &data
	case "kinds":
		return sample.Sample()
	case "nil":
		return nil
	case "list":
		return []any{1, "two", nil}
	case "text":
		return "text"
	}
	fail(fmt.Errorf("there is no data named %s", name))
	return nil
}

// versions names Go and the modules that were asked.
func versions() map[string]string {
	asked := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fail(fmt.Errorf("the program does not know its modules"))
	}
	for _, module := range info.Deps {
		asked[module.Path] = module.Version
	}
	return asked
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
