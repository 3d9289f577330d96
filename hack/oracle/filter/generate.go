package main

import (
	"math/rand/v2"
	"strings"
)

// generator makes patterns that are mostly valid, and tags that they may match.
type generator struct {
	random *rand.Rand
}

func (g generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func (g generator) pick(choices ...string) string { return choices[g.random.IntN(len(choices))] }

// tag returns a tag such as main-12-a3f or v1.2.3-rc1.
func (g generator) tag() string {
	text := g.pick("", "", "v", "main-", "dev_", "RELEASE.")
	for {
		text += g.pick("0", "1", "2", "10", "2024", "a", "b", "ab", "rc1", "alpine", "A", "f00")
		if !g.chance(65) {
			return text
		}
		text += g.pick(".", "-", "_", "")
	}
}

// pattern returns an expression, now and then with one character too many or too few.
func (g generator) pattern() string {
	text := g.pick("", "^", "^") + g.alternatives(3) + g.pick("", "$", "$")
	if !g.chance(15) {
		return text
	}
	at := g.random.IntN(len(text) + 1)
	if g.chance(40) && at < len(text) {
		return text[:at] + text[at+1:]
	}
	return text[:at] + g.pick("(", ")", "[", "]", "{", "}", "*", "+", "?", "\\", "|", "(?", "^", "$", "{2", "-", ",", "ä") + text[at:]
}

func (g generator) alternatives(depth int) string {
	text := g.sequence(depth)
	for g.chance(15) {
		text += "|" + g.sequence(depth)
	}
	return text
}

func (g generator) sequence(depth int) string {
	text := g.piece(depth)
	for g.chance(60) {
		text += g.piece(depth)
	}
	return text
}

func (g generator) piece(depth int) string {
	atom := ""
	switch {
	case depth > 0 && g.chance(30):
		opening := g.pick("(", "(", "(?P<n>", "(?P<ts>", "(?<n>", "(?:", "(?i:", "(?s-i:", "(?U:")
		atom = opening + g.alternatives(depth-1) + ")"
	case g.chance(25):
		atom = g.class()
	default:
		atom = g.pick("a", "b", "v", "1", "2", "main", "-", "_", ".", "\\.", "\\d", "\\d", "\\w", "\\D", "\\W", "\\s", "\\b",
			"\\B", "[0-9]", "[a-f0-9]", "\\pL", "\\PL", "\\p{Nd}", "\\x61", "\\141", "\\Qa.b\\E", "\\-", "\\_", "(?i)", "x{", "{1}")
	}
	if g.chance(40) {
		atom += g.pick("*", "+", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}", "{,2}", "{3,1}", "{1001}", "{40}", "{0}") + g.pick("", "", "", "?", "+")
	}
	return atom
}

func (g generator) class() string {
	text := "[" + g.pick("", "", "^")
	for {
		text += g.pick("a", "z", "0-9", "a-f", "A-Z", "-", "]", "[", "^", "\\d", "\\W", "\\]", "\\-", "&&", "--", "~~", "[:alpha:]",
			"[:^digit:]", "[:nope:]", "\\pL", "\\P{Lu}", "_", ".", "z-a", "\\x2e", "a-\\d", "\\b", ",")
		if !g.chance(50) {
			return text + "]"
		}
	}
}

// extracts returns different extracts.
func (g generator) extracts(count int) []string {
	return unique(nil, func() string {
		if g.chance(60) {
			return g.pick(pickedExtracts()...)
		}
		text := strings.Builder{}
		for {
			text.WriteString(g.pick("$", "{", "}", "1", "2", "0", "n", "ts", "$1", "${n}", "$ts", "-", ".", "x", "_", " ", "$$", "ä"))
			if !g.chance(75) {
				return text.String()
			}
		}
	}, count)
}
