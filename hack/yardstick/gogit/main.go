// Gogit is the yardstick for updating a git repository: it works as image updaters on go-git do. It clones the
// branch main without its history into a work tree, updates the files as the program setters does, adds the
// changed files one by one, commits and pushes.
//
// Usage: gogit URL NAMESPACE MANIFESTS_DIR
//
// It prints, as JSON, how many files it committed and how long each step took.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"tagboat.dev/yardstick/internal/setting"
)

const branch = plumbing.ReferenceName("refs/heads/main")

// report is the result of the program, with the wall time of each step in seconds.
type report struct {
	Files   int                `json:"files"`
	Seconds map[string]float64 `json:"seconds"`
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: gogit URL NAMESPACE MANIFESTS_DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "gogit:", err)
		os.Exit(1)
	}
}

func run(url, namespace, manifests string) error {
	wanted, err := setting.ReadPolicies(manifests, namespace)
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "gogit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)

	done := report{Seconds: make(map[string]float64)}
	step := func(name string, work func() error) {
		if err != nil {
			return
		}
		start := time.Now()
		if err = work(); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		done.Seconds[name] = time.Since(start).Seconds()
	}
	var repository *git.Repository
	step("clone", func() error {
		repository, err = git.PlainClone(directory, false, &git.CloneOptions{
			URL: url, ReferenceName: branch, SingleBranch: true, Depth: 1, Tags: git.NoTags,
		})
		return err
	})
	step("update", func() error {
		_, err := setting.UpdateTree(directory, wanted)
		return err
	})
	step("commit", func() error {
		done.Files, err = commit(repository)
		return err
	})
	step("push", func() error {
		return repository.Push(&git.PushOptions{RefSpecs: []config.RefSpec{config.RefSpec(branch + ":" + branch)}})
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}

// commit commits all changed files and returns how many there are.
func commit(repository *git.Repository) (int, error) {
	tree, err := repository.Worktree()
	if err != nil {
		return 0, err
	}
	status, err := tree.Status()
	if err != nil {
		return 0, err
	}
	for path := range status {
		if _, err := tree.Add(path); err != nil {
			return 0, err
		}
	}
	author := &object.Signature{Name: "Yardstick", Email: "yardstick@example.com", When: time.Now()}
	_, err = tree.Commit("Update from image update automation", &git.CommitOptions{Author: author})
	return len(status), err
}
