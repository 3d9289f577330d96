// Command filter asks Go's regexp package, with which Flux filters tags, for the results of patterns and extracts.
//
// It takes hand-picked patterns, extracts and tags (texts.go) and patterns and tags made from a grammar with a fixed
// seed (generate.go), and prints a JSON table: each pattern with either its error, or one bit for each tag and, for a
// few extracts, their results for the tags that match.
//
// Usage: filter [-seed N] [-patterns N] [-tags N] > testdata/filter/table.json
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
)

// PatternRow is one pattern with either its error or its results for the tags.
type PatternRow struct {
	Pattern string `json:"pattern"`
	Error   string `json:"error,omitempty"`
	// Matches has a bit for each tag.
	Matches  string       `json:"matches,omitempty"`
	Extracts []ExtractRow `json:"extracts,omitempty"`
}

// ExtractRow is one extract with its result for each tag that matches.
type ExtractRow struct {
	Extract string   `json:"extract"`
	Values  []string `json:"values"`
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of the generator")
	patternCount := flag.Int("patterns", 400, "how many patterns to make besides those picked by hand")
	tagCount := flag.Int("tags", 40, "how many tags to make besides those picked by hand")
	flag.Parse()
	made := generator{rand.New(rand.NewPCG(*seed, 0))}
	tags := unique(pickedTags(), made.tag, *tagCount)
	picked := pickedPatterns()
	patterns := unique(picked, made.pattern, *patternCount)
	fmt.Printf("{\n\"go\": %q,\n\"tags\": ", runtime.Version())
	printJSON(tags)
	fmt.Print(",\n\"patterns\": [\n")
	for i, pattern := range patterns {
		extracts := made.extracts(3)
		if i < len(picked) {
			extracts = made.extracts(5)
		}
		printJSON(patternRow(pattern, extracts, tags))
		if i < len(patterns)-1 {
			fmt.Print(",")
		}
		fmt.Print("\n")
	}
	fmt.Print("]\n}\n")
}

func patternRow(pattern string, extracts, tags []string) PatternRow {
	row := PatternRow{Pattern: pattern}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		row.Error = err.Error()
		return row
	}
	bits := []byte{}
	for _, extract := range extracts {
		row.Extracts = append(row.Extracts, ExtractRow{Extract: extract, Values: []string{}})
	}
	for _, tag := range tags {
		places := compiled.FindStringSubmatchIndex(tag)
		if len(places) == 0 {
			bits = append(bits, '0')
			continue
		}
		bits = append(bits, '1')
		for i := range row.Extracts {
			value := string(compiled.ExpandString(nil, row.Extracts[i].Extract, tag, places))
			row.Extracts[i].Values = append(row.Extracts[i].Values, value)
		}
	}
	row.Matches = string(bits)
	row.Extracts = slices.DeleteFunc(row.Extracts, func(row ExtractRow) bool { return len(row.Values) == 0 })
	return row
}

// unique adds generated texts to hand-picked ones, without duplicates.
func unique(texts []string, make func() string, count int) []string {
	seen := map[string]bool{}
	texts = slices.DeleteFunc(texts, func(text string) bool {
		isSeen := seen[text]
		seen[text] = true
		return isSeen
	})
	for wanted := len(texts) + count; len(texts) < wanted; {
		if text := make(); !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	return texts
}

// printJSON prints a value on one line.
func printJSON(value any) {
	line := bytes.Buffer{}
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(string(bytes.TrimSpace(line.Bytes())))
}
