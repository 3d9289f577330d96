package main

import (
	"fmt"
	"path"
)

// layout deals out paths: clusters hold apps, an app is a directory with a handful of files.
type layout struct {
	directories int
	directory   place
	room        int             // files that the current directory still takes
	taken       map[string]bool // file names in the current directory
}

// place is where a file lies, and whose it is.
type place struct {
	path             string
	app, team, stage string
}

const clusterCount = 24

// next returns the place of the next file; a name that is taken gets a made-up prefix.
func (l *layout) next(choice *random, name string) place {
	if l.room == 0 {
		l.open(choice)
	}
	l.room--
	directory, base := path.Split(name)
	for suffix := 2; l.taken[name]; suffix++ {
		name = fmt.Sprintf("%s%s-%d/%s", directory, pick(choice, animals), suffix, base)
	}
	l.taken[name] = true
	found := l.directory
	found.path = path.Join(found.path, name)
	return found
}

// open begins the next app directory.
func (l *layout) open(choice *random) {
	cluster := fmt.Sprintf("%s-%02d", pick(choice, regions), l.directories%clusterCount)
	app := fmt.Sprintf("%s-%s-%d", pick(choice, colours), pick(choice, animals), l.directories)
	area := pick(choice, []string{"apps", "apps", "apps", "infrastructure", "releases"})
	l.directory = place{
		path:  path.Join("clusters", cluster, area, app),
		app:   app,
		team:  pick(choice, teams),
		stage: pick(choice, stages),
	}
	l.directories++
	l.room = choice.between(3, 9)
	l.taken = make(map[string]bool)
}
