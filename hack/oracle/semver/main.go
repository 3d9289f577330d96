// Command semver asks the Go libraries that Flux uses which texts are versions, how versions are ordered, and which of
// them satisfy constraints.
//
// It takes hand-picked texts (texts.go) and texts made from a grammar with a fixed seed (generate.go), and prints a
// JSON table: each version with the parsers that accept it and its rank; each constraint with either its error or one
// bit for each version.
//
// Usage: semver [-seed N] [-versions N] [-constraints N] > testdata/semver/table.json
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/pkg/version"
)

// VersionRow is one text and the parsers that accept it.
type VersionRow struct {
	Text string `json:"text"`
	// Strict says whether StrictNewVersion takes it.
	Strict bool `json:"strict"`
	// Tag says whether Flux takes it.
	Tag bool `json:"tag"`
	// Rank is its place in the order, equal versions in the same; nil when NewVersion refuses the text.
	Rank *int `json:"rank,omitempty"`
}

// ConstraintRow is one constraint with either its error or a bit for each version that has a rank.
type ConstraintRow struct {
	Text   string `json:"text"`
	Error  string `json:"error,omitempty"`
	Wanted string `json:"wanted,omitempty"`
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of the generator")
	versionCount := flag.Int("versions", 60, "how many versions to make besides those picked by hand")
	constraintCount := flag.Int("constraints", 350, "how many constraints to make besides those picked by hand")
	flag.Parse()
	made := generator{rand.New(rand.NewPCG(*seed, 0))}
	versions, parsed := versionRows(unique(pickedVersions(), made.version, *versionCount))
	constraints := constraintRows(unique(pickedConstraints(), made.constraint, *constraintCount), parsed)
	modules, err := json.Marshal(moduleVersions())
	if err != nil {
		fail(err)
	}
	fmt.Printf("{\n\"modules\": %s,\n\"versions\": [\n", modules)
	printRows(versions)
	fmt.Print("],\n\"constraints\": [\n")
	printRows(constraints)
	fmt.Print("]\n}\n")
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

func versionRows(texts []string) ([]VersionRow, []*semver.Version) {
	rows := []VersionRow{}
	parsed := []*semver.Version{}
	for _, text := range texts {
		row := VersionRow{Text: text}
		if strict, err := semver.StrictNewVersion(text); err == nil {
			row.Strict = strict.Original() == text
		}
		if tag, err := version.ParseVersion(text); err == nil {
			row.Tag = tag.Original() == text
		}
		if loose, err := semver.NewVersion(text); err == nil {
			parsed = append(parsed, loose)
			row.Rank = new(int)
		}
		rows = append(rows, row)
	}
	places := ranks(parsed)
	for i := range rows {
		if rows[i].Rank != nil {
			*rows[i].Rank, places = places[0], places[1:]
		}
	}
	return rows, parsed
}

// ranks returns the rank of each version, and exits if the library's comparison is not an order.
func ranks(versions []*semver.Version) []int {
	sorted := slices.Clone(versions)
	sort.Sort(semver.Collection(sorted))
	places := make([]int, len(versions))
	for i, v := range versions {
		place := 0
		for k := 1; k < len(sorted) && sorted[k-1].LessThanEqual(v) && !sorted[k-1].Equal(v); k++ {
			if !sorted[k-1].Equal(sorted[k]) {
				place++
			}
		}
		places[i] = place
	}
	for i, left := range versions {
		for k, right := range versions {
			byRank := min(max(places[i]-places[k], -1), 1)
			if left.Compare(right) != byRank {
				fail(fmt.Errorf("%s and %s have no consistent order", left.Original(), right.Original()))
			}
		}
	}
	return places
}

func constraintRows(texts []string, versions []*semver.Version) []ConstraintRow {
	rows := []ConstraintRow{}
	for _, text := range texts {
		constraint, err := semver.NewConstraint(text)
		if err != nil {
			rows = append(rows, ConstraintRow{Text: text, Error: err.Error()})
			continue
		}
		bits := []byte{}
		for _, v := range versions {
			if constraint.Check(v) {
				bits = append(bits, '1')
			} else {
				bits = append(bits, '0')
			}
		}
		rows = append(rows, ConstraintRow{Text: text, Wanted: string(bits)})
	}
	return rows
}

// moduleVersions returns the versions of the modules that were used.
func moduleVersions() map[string]string {
	asked := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fail(fmt.Errorf("the program does not know its modules"))
	}
	for _, module := range info.Deps {
		asked[module.Path] = module.Version
	}
	return asked
}

// printRows prints a line for each row.
func printRows[Row any](rows []Row) {
	for i, row := range rows {
		line := bytes.Buffer{}
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(row); err != nil {
			fail(err)
		}
		comma := ","
		if i == len(rows)-1 {
			comma = ""
		}
		fmt.Println(string(bytes.TrimSpace(line.Bytes())) + comma)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
