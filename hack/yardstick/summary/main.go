// Summary makes the tables of the benchmark from its records.
//
// Usage: summary RECORDS
//
// RECORDS has one line of JSON for each run of a program: {"program": …, "figures": …, "verdict": …},
// where figures is what the program measure printed and verdict, which may be absent, what the program
// exactness did. Its status is 1 if Tagboat has not been exact in every run; figures never matter to it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// The programs of the benchmark.
const (
	setters      = "setters"
	tagboat      = "tagboat"
	tagboatAgain = "tagboat-again"
	grep         = "grep"
	overwrite    = "overwrite"

	clone     = "clone"
	cloneBare = "clone-bare"
	gogit     = "gogit"
	cold      = "cold"
	warm      = "warm"
	warmAll   = "warm-all"
	idle      = "idle"
	lsRemote  = "ls-remote"
	push      = "push"

	detailed     = "message-detailed"
	conventional = "message-conventional"
	short        = "message-summary"
	handlebars   = "message-handlebars"
	start        = "message-start"

	semver       = "policy-semver"
	alphabetical = "policy-alphabetical"
	numerical    = "policy-numerical"
	oneTag       = "policy-start"

	log         = "log"
	history     = "history"
	historyJSON = "history-json"
)

// record is one run of a program.
type record struct {
	Program string   `json:"program"`
	Figures figures  `json:"figures"`
	Verdict *verdict `json:"verdict"`
}

type figures struct {
	WallSeconds   float64 `json:"wallSeconds"`
	CPUSeconds    float64 `json:"cpuSeconds"`
	PeakMegabytes float64 `json:"peakMegabytes"`
	ExitStatus    int     `json:"exitStatus"`
}

type verdict struct {
	ToChange        int `json:"toChange"`
	Exact           int `json:"exact"`
	OthersTouched   int `json:"othersTouched"`
	Unreadable      int `json:"unreadable"`
	UnreadableNamed int `json:"unreadableNamed"`
}

// byteExact returns whether the update wrote the expected bytes, and nothing else.
func (v verdict) byteExact() bool {
	return v.Exact == v.ToChange && v.OthersTouched == 0
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: summary RECORDS")
		os.Exit(2)
	}
	records, err := readRecords(os.Args[1])
	if err == nil {
		err = errors.Join(printFigures(os.Stdout, records), printVerdicts(os.Stdout, records))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
	for _, each := range records {
		if (each.Program == tagboat || each.Program == tagboatAgain) && !each.Verdict.byteExact() {
			fmt.Fprintln(os.Stderr, "summary: Tagboat was not byte-exact")
			os.Exit(1)
		}
	}
}

func readRecords(path string) ([]record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var records []record
	decoder := json.NewDecoder(file)
	for {
		var next record
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		updates := next.Program == setters || next.Program == tagboat || next.Program == tagboatAgain
		if updates && next.Verdict == nil {
			return nil, fmt.Errorf("%s: a run of %s has no verdict", path, next.Program)
		}
		records = append(records, next)
	}
}
