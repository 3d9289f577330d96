// Command health asks kubectl, kstatus and Argo CD about generated states of workloads.
//
// It makes objects from a fixed seed (generate.go and a file for each kind): most as controllers leave them in the
// course of a rollout, some changed by hand. It prints a JSON table: each object with the answer of
// `kubectl rollout status`, of kstatus, and of Argo CD's health (judges.go).
//
// Usage: health [-seed N] [-count N] > testdata/rollout/health.json
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Row is one object with the answers.
type Row struct {
	Object map[string]any `json:"object"`
	// Installed says that the rollout of the same image was complete at the last observation. No judge knows it.
	Installed bool `json:"installed,omitempty"`
	// Kubectl is done, waiting, failed or refused; empty for a kind that `kubectl rollout status` does not know.
	Kubectl string `json:"kubectl,omitempty"`
	// Kstatus is a status of the library, or Error.
	Kstatus string `json:"kstatus"`
	// Argo is a health of Argo CD; empty for a kind that it does not assess.
	Argo string `json:"argo,omitempty"`
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of the generator")
	count := flag.Int("count", 2000, "how many states to make")
	flag.Parse()
	made := &generator{rand.New(rand.NewPCG(*seed, 0))}
	seen := map[string]bool{}
	modules, err := json.Marshal(judgeVersions())
	check(err)
	fmt.Printf("{\n\"modules\": %s,\n\"rows\": [\n", modules)
	for written := 0; written < *count; {
		state := made.state()
		object, err := json.Marshal(state.object)
		check(err)
		key := fmt.Sprintf("%t %s", state.installed, object)
		if seen[key] {
			continue
		}
		seen[key] = true
		written++
		// The libraries read numbers as a client decodes them.
		read := &unstructured.Unstructured{}
		check(read.UnmarshalJSON(object))
		printRow(Row{state.object, state.installed, kubectl(read), kstatus(read), argo(read)}, written == *count)
	}
	fmt.Print("]\n}\n")
}

func printRow(row Row, isLast bool) {
	line := bytes.Buffer{}
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(row))
	comma := ","
	if isLast {
		comma = ""
	}
	fmt.Println(string(bytes.TrimSpace(line.Bytes())) + comma)
}

// judgeVersions returns the versions of the modules whose answers the table has.
func judgeVersions() map[string]string {
	versions := map[string]string{
		"k8s.io/kubectl": "", "sigs.k8s.io/cli-utils": "",
		"github.com/argoproj/argo-cd/v3": "", "github.com/argoproj/argo-cd/gitops-engine": "",
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		check(fmt.Errorf("the program does not know its modules"))
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if _, ok := versions[module.Path]; ok {
			versions[module.Path] = module.Version
		}
	}
	return versions
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
}
