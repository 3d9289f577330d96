package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestFleetIsDeterministic makes the fleet twice.
func TestFleetIsDeterministic(t *testing.T) {
	if first, second := fingerprint(t), fingerprint(t); first != second {
		t.Errorf("two runs differ: %s, %s", first, second)
	}
}

func fingerprint(t *testing.T) string {
	sum := sha256.New()
	err := generate(func(made file) error {
		fmt.Fprintf(sum, "%s %d %d\n%s%s", made.path, len(made.before), len(made.after), made.before, made.after)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// TestFleetCounts holds the figures that the documentation names.
func TestFleetCounts(t *testing.T) {
	counted := newFacts()
	paths := make(map[string]bool)
	err := generate(func(made file) error {
		counted.add(made)
		if paths[made.path] {
			t.Errorf("%s is there twice", made.path)
		}
		paths[made.path] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string][2]int{
		"files":           {counted.Files, fileCount},
		"policies":        {counted.Policies, 20},
		"marked files":    {counted.MarkedFiles, fileCount / 20},
		"moving markers":  {counted.MovingMarkers, 980},
		"staying markers": {counted.StayingMarkers, 75},
		"files to change": {counted.FilesToChange, 920},
		"unreadable":      {counted.UnreadableMarkedFiles, 35},
	}
	for name, figures := range wanted {
		if figures[0] != figures[1] {
			t.Errorf("%s: got %d, want %d", name, figures[0], figures[1])
		}
	}
}

// TestFleetReadsAsYAML reads every file with an independent YAML library: all but the unreadable ones
// must be YAML, all markers must stand where they count, and both texts must say the same except for
// the markers that move, which must read as the text that their policy wants.
func TestFleetReadsAsYAML(t *testing.T) {
	wanted := wantedValues()
	err := generate(func(made file) error {
		before, err := readScalars(made.before)
		if made.unreadable {
			if err == nil {
				t.Errorf("%s can be read", made.path)
			}
			return nil
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", made.path, err, made.before)
			return nil
		}
		if !made.marked() {
			if bytes.Contains(made.before, []byte(`"$imagepolicy"`)) {
				t.Errorf("%s has a marker", made.path)
			}
			return nil
		}
		after, err := readScalars(made.after)
		if err != nil {
			t.Errorf("%s after the update: %v", made.path, err)
			return nil
		}
		compare(t, made, before, after, wanted)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, made file, before, after []*yaml.Node, wanted map[string]string) {
	t.Helper()
	if len(before) != len(after) {
		t.Errorf("%s: %d scalars became %d", made.path, len(before), len(after))
		return
	}
	moved, stayed := 0, 0
	for i, node := range after {
		target := markerTarget(node)
		value, known := wanted[target]
		differs := node.Value != before[i].Value || node.Style != before[i].Style
		switch {
		case target == "" && differs:
			t.Errorf("%s:%d: an unmarked scalar changes", made.path, node.Line)
		case target == "":
		case !differs:
			stayed++
			if known && node.Value != value {
				t.Errorf("%s:%d: %q should have moved to %q", made.path, node.Line, node.Value, value)
			}
		default:
			moved++
			if node.Value != value || node.ShortTag() != "!!str" {
				t.Errorf("%s:%d: got %s %q, want text %q", made.path, node.Line, node.ShortTag(), node.Value, value)
			}
		}
	}
	if moved != made.placed[moves] {
		t.Errorf("%s: %d markers move, want %d", made.path, moved, made.placed[moves])
	}
	placed := made.placed[alreadyCurrent] + made.placed[otherNamespace] + made.placed[unknownPolicy]
	if stayed != placed {
		t.Errorf("%s: %d markers stay, want %d", made.path, stayed, placed)
	}
}

// wantedValues maps each possible target of a marker to its value.
func wantedValues() map[string]string {
	wanted := make(map[string]string)
	for _, each := range policies {
		for _, part := range []field{wholeReference, nameField, tagField, digestField} {
			wanted[policyNamespace+":"+each.name+string(part)] = each.latest(part)
		}
	}
	return wanted
}

// readScalars returns the scalars of all documents, in order. Line ends are made uniform first: behind
// CR LF the library takes the comment above a sequence item for one below the item before.
func readScalars(content []byte) ([]*yaml.Node, error) {
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	var scalars []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return scalars, nil
		}
		if err != nil {
			return nil, err
		}
		scalars = appendScalars(scalars, &document)
	}
}

func appendScalars(scalars []*yaml.Node, node *yaml.Node) []*yaml.Node {
	if node.Kind == yaml.ScalarNode {
		return append(scalars, node)
	}
	for _, child := range node.Content {
		scalars = appendScalars(scalars, child)
	}
	return scalars
}

// markerTarget returns the target of the marker of a scalar, or nothing without a marker.
func markerTarget(node *yaml.Node) string {
	comment := node.LineComment
	if comment == "" {
		comment = node.HeadComment
	}
	var members map[string]string
	if yaml.Unmarshal([]byte(strings.TrimLeft(comment, "#")), &members) != nil {
		return ""
	}
	return members["$imagepolicy"]
}
