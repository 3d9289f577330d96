package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// writer makes one document, line by line.
type writer struct {
	random   *rand.Rand
	text     strings.Builder
	comments int
	keys     int
}

// newDocument returns a small document whose root is a mapping, without absent values.
func newDocument(random *rand.Rand) string {
	w := &writer{random: random}
	w.mapping(0, 0, false)
	w.between(0)
	return w.text.String()
}

func (w *writer) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *writer) comment() string {
	w.comments++
	return fmt.Sprintf("# c%d", w.comments)
}

func (w *writer) key() string {
	w.keys++
	return fmt.Sprintf("k%d", w.keys)
}

// between writes blank lines and comments on lines of their own before an entry at an indentation.
func (w *writer) between(indent int) {
	column := indent
	if w.chance(10) {
		column = max(0, indent+w.random.IntN(5)-2)
	}
	for w.chance(30) {
		if w.chance(40) {
			w.text.WriteString("\n")
			continue
		}
		if w.chance(10) {
			column = max(0, indent+w.random.IntN(7)-3)
		}
		w.text.WriteString(strings.Repeat(" ", column) + w.comment() + "\n")
	}
}

func (w *writer) end() {
	if w.chance(25) {
		w.text.WriteString(" " + w.comment())
	}
	w.text.WriteString("\n")
}

// mapping writes a block mapping; the first key may stand on a line that has begun.
func (w *writer) mapping(indent, depth int, begun bool) {
	for range 1 + w.random.IntN(3) {
		if !begun {
			w.between(indent)
			w.text.WriteString(strings.Repeat(" ", indent))
		}
		begun = false
		w.text.WriteString(w.key() + ":")
		switch {
		case depth < 3 && w.chance(25):
			w.end()
			w.mapping(indent+2, depth+1, false)
		case depth < 3 && w.chance(35):
			w.end()
			w.sequence(indent+2*w.random.IntN(2), depth+1, false)
		case w.chance(10):
			w.end()
			w.between(indent + 2)
			w.text.WriteString(strings.Repeat(" ", indent+2))
			w.scalar(indent + 2)
		default:
			w.text.WriteString(" ")
			w.value(indent)
		}
	}
}

// sequence writes a block sequence; the first dash may stand on a line that has begun.
func (w *writer) sequence(indent, depth int, begun bool) {
	for range 1 + w.random.IntN(3) {
		if !begun {
			w.between(indent)
			w.text.WriteString(strings.Repeat(" ", indent))
		}
		begun = false
		w.text.WriteString("- ")
		switch {
		case depth < 3 && w.chance(20):
			w.mapping(indent+2, depth+1, true)
		case depth < 3 && w.chance(8):
			w.end()
			w.sequence(indent+2, depth+1, false)
		case depth < 3 && w.chance(8):
			w.sequence(indent+2, depth+1, true)
		default:
			w.value(indent)
		}
	}
}

func (w *writer) value(indent int) {
	switch {
	case w.chance(8):
		w.text.WriteString("[a, b]")
		w.end()
	case w.chance(8):
		w.flow(indent)
	case w.chance(8):
		w.text.WriteString("|")
		w.end()
		w.text.WriteString(strings.Repeat(" ", indent+4) + "text\n")
	default:
		w.scalar(indent)
	}
}

// flow writes a flow collection over several lines.
func (w *writer) flow(indent int) {
	isMapping := w.chance(50)
	open, shut := "[", "]"
	if isMapping {
		open, shut = "{", "}"
	}
	w.text.WriteString(open)
	w.end()
	for range 1 + w.random.IntN(2) {
		w.text.WriteString(strings.Repeat(" ", indent+2))
		if isMapping {
			w.text.WriteString(w.key() + ": ")
		}
		w.text.WriteString("v,")
		w.end()
	}
	w.text.WriteString(strings.Repeat(" ", indent+2))
	if isMapping {
		w.text.WriteString(w.key() + ": ")
	}
	w.text.WriteString("v")
	w.end()
	w.text.WriteString(strings.Repeat(" ", indent) + shut)
	w.end()
}

func (w *writer) scalar(indent int) {
	switch w.random.IntN(6) {
	case 0:
		w.text.WriteString("'v'")
	case 1:
		w.text.WriteString("\"v\"")
	case 2:
		w.text.WriteString("!!str v")
	case 3:
		w.text.WriteString("v\n" + strings.Repeat(" ", indent+2) + "w")
	default:
		w.text.WriteString("v")
	}
	w.end()
}
