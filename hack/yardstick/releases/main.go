// Releases writes the history of a repository in which marked tags change, for git fast-import.
//
// Usage: releases COMMITS >STREAM
//
// The repository has 242 HelmReleases in 16 environments, each with a marker in its values. The first commit of the
// branch main adds them; each of the others changes the tags of one to four, so that 35,000 commits have about 84,000
// changes. Every run writes the same bytes.
package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

const (
	releases     = 242
	environments = 16
	variables    = 20
)

// firstCommit is the time of the first commit, in seconds since 1970; each other follows an hour after the one before
// it.
const firstCommit = 1_500_000_000

// changesPerCommit are the numbers of changes from which each commit takes one.
var changesPerCommit = []int{1, 2, 2, 3, 4}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: releases COMMITS")
		os.Exit(2)
	}
	commits, err := strconv.Atoi(os.Args[1])
	if err != nil || commits < 1 {
		fmt.Fprintf(os.Stderr, "releases: %q is no number of commits\n", os.Args[1])
		os.Exit(2)
	}
	output := bufio.NewWriter(os.Stdout)
	write(output, commits)
	if err := output.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

// write ignores errors, which the buffer keeps for its flush.
func write(output io.Writer, commits int) {
	random := rand.New(rand.NewPCG(7, 7))
	versions := make([]int, releases)
	for commit := range commits {
		when := firstCommit + 3600*commit
		fmt.Fprintf(output, "commit refs/heads/main\ncommitter Fleet <fleet@example.com> %d +0000\n", when)
		writeData(output, fmt.Sprintf("Update %d\n", commit))
		changed := random.Perm(releases)
		if commit > 0 {
			changed = changed[:changesPerCommit[random.IntN(len(changesPerCommit))]]
		}
		for _, release := range changed {
			versions[release]++
			tag := fmt.Sprintf("main-%06d-%07x", versions[release], random.Uint32()>>4)
			fmt.Fprintf(output, "M 100644 inline clusters/env-%d/apps/app-%d/release.yaml\n", release%environments, release)
			writeData(output, manifest(release, tag))
		}
	}
	fmt.Fprintln(output, "done")
}

// manifest returns a HelmRelease of about two kilobytes.
func manifest(release int, tag string) string {
	team := release % environments
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: app-%[1]d
  namespace: team-%[2]d
spec:
  interval: 10m
  chart:
    spec:
      chart: backend
      version: 3.2.1
      sourceRef:
        kind: HelmRepository
        name: internal
  values:
    replicaCount: 2
    image:
      repository: registry.example.com/team-%[2]d/app-%[1]d
      tag: %[3]s # {"$imagepolicy": "flux-system:app-%[1]d:tag"}
    resources:
      requests: {cpu: 100m, memory: 256Mi}
      limits: {memory: 512Mi}
    env:
`, release, team, tag)
	for variable := range variables {
		fmt.Fprintf(&text, "      - name: VARIABLE_%[1]d\n        value: \"value-%[1]d-%[2]d\"\n", variable, release)
	}
	return text.String()
}

func writeData(output io.Writer, content string) {
	fmt.Fprintf(output, "data %d\n%s\n", len(content), content)
}
