package main

import (
	"math/rand/v2"
	"strings"
)

// generator makes texts that are mostly valid and often near one another.
type generator struct {
	random *rand.Rand
}

func (g generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func (g generator) pick(choices ...string) string { return choices[g.random.IntN(len(choices))] }

// version returns a version of one to three parts, rarely four.
func (g generator) version() string {
	parts := []string{g.pick("0", "1", "2", "10")}
	for len(parts) < 3 && g.chance(90) {
		parts = append(parts, g.pick("0", "1", "2", "3", "10", "01"))
	}
	if g.chance(3) {
		parts = append(parts, "4")
	}
	return g.slip(g.pick("", "", "", "v") + strings.Join(parts, ".") + g.prerelease(40) + g.metadata(10))
}

// slip returns a text with, sometimes, one character too many or too few.
func (g generator) slip(text string) string {
	if text == "" || !g.chance(15) {
		return text
	}
	at := g.random.IntN(len(text))
	if g.chance(40) {
		return text[:at] + text[at+1:]
	}
	return text[:at] + g.pick(" ", "-", " - ", "|", "||", ".", ",", "v", "x", "0", ">", "=", "~", "+", "\t", "ä") + text[at:]
}

func (g generator) prerelease(percent int) string {
	text := ""
	mark := "-"
	for g.chance(percent) {
		text += mark + g.pick("0", "1", "2", "11", "a", "b", "rc", "rc1", "RC", "-", "00", "0a")
		mark = "."
	}
	return text
}

func (g generator) metadata(percent int) string {
	if g.chance(percent) {
		return "+" + g.pick("a", "01", "b.c", "-")
	}
	return ""
}

// constraint returns one to three alternatives.
func (g generator) constraint() string {
	alternatives := []string{g.alternative()}
	for len(alternatives) < 3 && g.chance(30) {
		alternatives = append(alternatives, g.alternative())
	}
	return g.slip(strings.Join(alternatives, g.pick("||", " || ", "|| ", " ||")))
}

func (g generator) alternative() string {
	text := g.pick("", "", "", " ") + g.comparator()
	for g.chance(35) {
		text += g.pick(" ", " ", ",", ", ", " , ", "  ", "\t", ",,", "") + g.comparator()
	}
	return text + g.pick("", "", "", "", " ", ",")
}

func (g generator) comparator() string {
	if g.chance(12) {
		return g.pattern() + g.pick(" - ", " - ", "  -  ", " -", "-") + g.pattern()
	}
	operator := g.pick("", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^")
	return operator + g.pick("", "", "", " ") + g.pattern()
}

func (g generator) pattern() string {
	parts := []string{g.pick("0", "0", "1", "1", "2", "2", "x", "*")}
	for len(parts) < 3 && g.chance(80) {
		parts = append(parts, g.pick("0", "0", "1", "2", "3", "10", "x", "X", "*"))
	}
	return g.pick("", "", "", "v") + strings.Join(parts, ".") + g.prerelease(25) + g.metadata(5)
}
