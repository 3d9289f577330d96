// Command comments asks Go's YAML library to which scalar values it attaches comments.
//
// It generates small YAML documents from a grammar with a fixed seed, adds comments at random places, and prints a JSON
// table: each document with the values to which the library attaches a single comment (the line comment, otherwise the
// head comment). Flux finds its markers by exactly that attachment.
//
// Usage: comments [-seed N] [-count N] > testdata/comments/attachment.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Case is one document and the library's answer.
type Case struct {
	Source   string            `json:"source"`
	Comments map[string]string `json:"comments"`
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of the generator")
	count := flag.Int("count", 1500, "how many documents that carry at least one comment")
	flag.Parse()
	cases := []Case{}
	random := rand.New(rand.NewPCG(*seed, 0))
	for len(cases) < *count {
		document := newDocument(random)
		answer, err := attachments(document)
		if err != nil || !strings.Contains(document, "#") {
			continue
		}
		cases = append(cases, Case{Source: document, Comments: answer})
	}
	fmt.Println("[")
	for i, c := range cases {
		line, err := json.Marshal(c)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		comma := ","
		if i == len(cases)-1 {
			comma = ""
		}
		fmt.Println(string(line) + comma)
	}
	fmt.Println("]")
}

// attachments returns, by path, the comment of each scalar value.
func attachments(source string) (map[string]string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(source), &root); err != nil {
		return nil, err
	}
	answer := map[string]string{}
	visit(&root, "", answer)
	return answer, nil
}

func visit(node *yaml.Node, path string, answer map[string]string) {
	switch node.Kind {
	case yaml.DocumentNode:
		for _, child := range node.Content {
			visit(child, path, answer)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			visit(node.Content[i+1], path+"."+node.Content[i].Value, answer)
		}
	case yaml.SequenceNode:
		for i, child := range node.Content {
			visit(child, fmt.Sprintf("%s[%d]", path, i), answer)
		}
	case yaml.ScalarNode:
		comment := node.LineComment
		if comment == "" {
			comment = node.HeadComment
		}
		comment = strings.TrimRight(comment, "\n")
		if comment != "" && !strings.Contains(comment, "\n") {
			answer[path] = comment
		}
	}
}
