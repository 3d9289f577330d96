// Exactness compares an updated tree with the expected one.
//
// Usage: exactness FLEET TREE [OUTPUT]
//
// FLEET is a directory written by the program fleet, TREE a copy of FLEET/in (with its times, as cp -a
// makes it) after the update, and OUTPUT the JSON that the updater printed, whose member "unparsable"
// lists the files that it could not read. It prints one line of JSON with the counts of verdict.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// verdict counts the results of an update.
type verdict struct {
	ToChange        int `json:"toChange"`        // files that had to change
	Exact           int `json:"exact"`           // of these, the ones that are as they should be, byte for byte
	OthersTouched   int `json:"othersTouched"`   // all other files that were written, made or removed
	Unreadable      int `json:"unreadable"`      // marked files that are no YAML
	UnreadableNamed int `json:"unreadableNamed"` // of these, the ones that the updater named
}

func main() {
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: exactness FLEET TREE [OUTPUT]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "exactness:", err)
		os.Exit(1)
	}
}

func run(fleet, tree string, output []string) error {
	found, err := compareTrees(filepath.Join(fleet, "in"), filepath.Join(fleet, "expected"), tree)
	if err != nil {
		return err
	}
	var facts struct {
		UnreadablePaths []string `json:"unreadablePaths"`
	}
	if err := readJSON(filepath.Join(fleet, "facts.json"), &facts); err != nil {
		return err
	}
	found.Unreadable = len(facts.UnreadablePaths)
	for _, path := range output {
		named, err := namedFiles(path)
		if err != nil {
			return err
		}
		for _, file := range facts.UnreadablePaths {
			if slices.Contains(named, file) {
				found.UnreadableNamed++
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// namedFiles returns the files that an updater says it could not read.
func namedFiles(output string) ([]string, error) {
	var said struct {
		Unparsable []struct {
			File string `json:"file"`
		} `json:"unparsable"`
	}
	if err := readJSON(output, &said); err != nil {
		return nil, err
	}
	named := make([]string, len(said.Unparsable))
	for i, each := range said.Unparsable {
		named[i] = filepath.Clean(each.File)
	}
	return named, nil
}

func readJSON(path string, value any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
