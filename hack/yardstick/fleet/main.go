// Fleet writes a made-up GitOps repository for measurements: 20,000 YAML files as people write them, of
// which every twentieth is marked for image updates.
//
// Usage: fleet [--moved POLICY] DIR
//
// It writes DIR/in (the tree to update), DIR/expected (the files that an update has to change, as they
// must read afterwards), DIR/manifests (the policies with their decisions, and an automation) and
// DIR/facts.json (what there is to count), and prints the facts. Every run writes the same bytes.
//
// With --moved, the policy of this name, or every one if it is "all", has decided for one tag further; everything
// else is the same.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	moved := flag.String("moved", "", "let the `policy` of this name, or all, be one tag further")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: fleet [--moved POLICY] DIR")
		os.Exit(2)
	}
	err := movePolicies(*moved)
	if err == nil {
		err = writeFleet(flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// writeFleet writes everything under a directory, which must not hold a fleet yet.
func writeFleet(directory string) error {
	input := filepath.Join(directory, "in")
	if _, err := os.Stat(input); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already", input)
	}
	counted := newFacts()
	err := generate(func(made file) error {
		counted.add(made)
		if made.changes() {
			if err := writeFile(filepath.Join(directory, "expected", made.path), made.after); err != nil {
				return err
			}
		}
		return writeFile(filepath.Join(input, made.path), made.before)
	})
	if err != nil {
		return err
	}
	for _, manifest := range manifests() {
		if err := writeFile(filepath.Join(directory, "manifests", manifest.path), manifest.before); err != nil {
			return err
		}
	}
	encoded, err := json.MarshalIndent(counted, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(directory, "facts.json"), append(encoded, '\n')); err != nil {
		return err
	}
	fmt.Println(counted)
	return nil
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
