package main

// How many files of each sort the fleet has.
const (
	fileCount       = 20_000
	changingFiles   = 920
	stayingFiles    = 45 // marked, but nothing in them moves
	unreadableFiles = 35

	secondMoves = 60 // changing files with a second marker that moves
	secondStays = 30 // changing files with a second marker that stays
)

// plan is the expected content of one file.
type plan struct {
	markers    []marker
	unreadable bool
}

// planFiles draws the marked files, and their markers.
func planFiles() []plan {
	choice := newRandom(fileCount + 1)
	order := make([]int, fileCount)
	for i := range order {
		order[i] = i
	}
	shuffle(choice, order)

	plans := make([]plan, fileCount)
	for rank, index := range order[:changingFiles+stayingFiles+unreadableFiles] {
		planned := &plans[index]
		switch {
		case rank < changingFiles:
			planned.markers = changingMarkers(choice, rank)
		case rank < changingFiles+stayingFiles:
			planned.markers = []marker{{pick(choice, policies), stays(rank)}}
		default:
			planned.markers = []marker{{pick(choice, policies), moves}}
			planned.unreadable = true
		}
	}
	return plans
}

func changingMarkers(choice *random, rank int) []marker {
	markers := []marker{{pick(choice, policies), moves}}
	switch {
	case rank < secondMoves:
		markers = append(markers, marker{pick(choice, policies), moves})
	case rank < secondMoves+secondStays:
		markers = append(markers, marker{pick(choice, policies), stays(rank)})
		shuffle(choice, markers)
	}
	return markers
}

// stays deals out the reasons for which a marker is left alone.
func stays(rank int) outcome {
	return []outcome{alreadyCurrent, otherNamespace, unknownPolicy}[rank%3]
}
