package main

import "fmt"

// file is a generated file.
type file struct {
	path       string
	before     []byte
	after      []byte
	unreadable bool
	placed     [outcomeCount]int
}

// changes says whether the update has to change the file.
func (f file) changes() bool {
	return f.placed[moves] > 0
}

// marked says whether the file has a marker, be it readable or not.
func (f file) marked() bool {
	return f.unreadable || f.placed != [outcomeCount]int{}
}

// generate makes the files of the fleet, one by one, and hands them over in order of their creation.
func generate(receive func(file) error) error {
	var places layout
	for index, planned := range planFiles() {
		choice := newRandom(uint64(index))
		var drawn kind
		if planned.unreadable {
			drawn = kind{names: []string{"templates/deployment.yaml", "templates/web.yaml"}}
		} else {
			drawn = drawKind(choice, len(planned.markers) > 0)
		}
		place := places.next(choice, pick(choice, drawn.names))
		made := makeFile(choice, planned, drawn, place)
		if err := receive(made); err != nil {
			return err
		}
	}
	return nil
}

func makeFile(choice *random, planned plan, drawn kind, place place) file {
	style := chooseStyle(choice)
	build := &builder{choice: choice, style: style, pending: planned.markers, app: place.app, team: place.team, stage: place.stage}
	if planned.unreadable {
		text := []byte(build.chartTemplate())
		return file{path: place.path, before: text, after: text, unreadable: true}
	}
	writer := &printer{style: style, choice: choice}
	for i, document := range drawn.documents(build) {
		if i > 0 || style.leadingSeparator {
			writer.write("---\n")
		}
		writer.document(document)
	}
	if len(build.pending) > 0 {
		panic(fmt.Sprintf("%s: %d markers found no place", place.path, len(build.pending)))
	}
	before, after := writer.finish()
	return file{path: place.path, before: before, after: after, placed: writer.placed}
}
