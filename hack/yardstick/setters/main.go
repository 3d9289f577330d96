// Setters is the yardstick for updating a tree of files: it works as the known image updaters do, on the
// library they use. It parses a marked file with kyaml, sets the marked scalars in the parsed tree and
// writes the tree out again.
//
// Usage: setters DIR NAMESPACE MANIFESTS_DIR
//
// DIR is the tree to update, NAMESPACE the one whose policies count, MANIFESTS_DIR holds these policies.
// It prints what it did as JSON: the number of files changed, the number of scalars set, and the marked
// files that it could not read.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"tagboat.dev/yardstick/internal/setting"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: setters DIR NAMESPACE MANIFESTS_DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "setters:", err)
		os.Exit(1)
	}
}

func run(directory, namespace, manifests string) error {
	wanted, err := setting.ReadPolicies(manifests, namespace)
	if err != nil {
		return err
	}
	done, err := setting.UpdateTree(directory, wanted)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}
