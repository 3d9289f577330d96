package main

import (
	"fmt"
	"path"
)

// facts are the figures of a fleet before it is updated.
type facts struct {
	Files                 int      `json:"files"`
	Bytes                 int      `json:"bytes"`
	Directories           int      `json:"directories"`
	Policies              int      `json:"policies"`
	MarkedFiles           int      `json:"markedFiles"`
	MovingMarkers         int      `json:"movingMarkers"`
	StayingMarkers        int      `json:"stayingMarkers"`
	FilesToChange         int      `json:"filesToChange"`
	UnreadableMarkedFiles int      `json:"unreadableMarkedFiles"`
	UnreadablePaths       []string `json:"unreadablePaths"`

	directories map[string]bool
}

func newFacts() *facts {
	return &facts{Policies: len(policies), directories: make(map[string]bool)}
}

// add counts a file.
func (f *facts) add(made file) {
	f.Files++
	f.Bytes += len(made.before)
	f.directories[path.Dir(made.path)] = true
	f.Directories = len(f.directories)
	f.MovingMarkers += made.placed[moves]
	f.StayingMarkers += made.placed[alreadyCurrent] + made.placed[otherNamespace] + made.placed[unknownPolicy]
	if made.marked() {
		f.MarkedFiles++
	}
	if made.changes() {
		f.FilesToChange++
	}
	if made.unreadable {
		f.UnreadableMarkedFiles++
		f.UnreadablePaths = append(f.UnreadablePaths, made.path)
	}
}

func (f *facts) String() string {
	return fmt.Sprintf("%d files in %d directories, %.1f MB; %d files marked for %d policies: %d markers move in %d files, %d stay; %d files are no YAML",
		f.Files, f.Directories, float64(f.Bytes)/1e6, f.MarkedFiles, f.Policies, f.MovingMarkers, f.FilesToChange, f.StayingMarkers, f.UnreadableMarkedFiles)
}
