// Command unicode prints the tables of characters of this Go release as Rust source.
//
// Usage: unicode > crates/go-template/src/unicode/tables.rs
package main

import (
	"fmt"
	"strings"
	"unicode"
)

// width is where a line of the tables ends.
const width = 106

func main() {
	fmt.Printf("//! Which characters Go counts among what, and how their case changes (Unicode %s).\n", unicode.Version)
	fmt.Print("//!\n//! Made by `make oracle` (`hack/oracle/unicode`), from the tables of Go itself.\n\n")
	printClass("LETTER", "letters", unicode.IsLetter)
	printClass("DIGIT", "decimal digits", unicode.IsDigit)
	printClass("NUMBER", "numbers", unicode.IsNumber)
	printClass("UPPER", "upper-case letters", unicode.IsUpper)
	printClass("LOWER", "lower-case letters", unicode.IsLower)
	printClass("TITLE", "title-case letters", unicode.IsTitle)
	printClass("PUNCTUATION", "punctuation", unicode.IsPunct)
	printClass("PRINTABLE", "what is printed as it is", unicode.IsPrint)
	printCases()
}

// printClass prints the ranges of characters for which is holds.
func printClass(name, what string, is func(rune) bool) {
	cells := []string{}
	for first := rune(0); first <= unicode.MaxRune; first++ {
		if !is(first) {
			continue
		}
		last := first
		for last < unicode.MaxRune && is(last+1) {
			last++
		}
		cells = append(cells, fmt.Sprintf("(0x%x, 0x%x)", first, last))
		first = last
	}
	fmt.Printf("/// First and last of each run of %s.\n#[rustfmt::skip]\n", what)
	fmt.Printf("pub(super) const %s: &[(u32, u32)] = &[\n", name)
	printCells(cells)
	fmt.Print("];\n\n")
}

// printCases prints Go's ranges of characters with the distances to their upper, lower and title case.
func printCases() {
	fmt.Print("/// The distance that stands for runs in which upper and lower case take turns.\n")
	fmt.Printf("pub(super) const TAKES_TURNS: i32 = 0x%x;\n\n", unicode.UpperLower)
	fmt.Print("/// First and last of each run, and how far it is to upper, lower and title case.\n#[rustfmt::skip]\n")
	fmt.Print("pub(super) const CASES: &[(u32, u32, [i32; 3])] = &[\n")
	cells := []string{}
	for _, r := range unicode.CaseRanges {
		cells = append(cells, fmt.Sprintf("(0x%x, 0x%x, [%d, %d, %d])", r.Lo, r.Hi, r.Delta[0], r.Delta[1], r.Delta[2]))
	}
	printCells(cells)
	fmt.Print("];\n")
}

// printCells prints cells with commas, as many on a line as fit.
func printCells(cells []string) {
	line := strings.Builder{}
	for _, cell := range cells {
		if line.Len()+len(cell)+2 > width {
			fmt.Printf("   %s\n", line.String())
			line.Reset()
		}
		line.WriteString(" " + cell + ",")
	}
	fmt.Printf("   %s\n", line.String())
}
