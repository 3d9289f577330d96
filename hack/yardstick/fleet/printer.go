package main

import (
	"bytes"
	"fmt"
	"strings"
)

// printer writes a file twice at once: as it stands, and as it has to read after the update.
type printer struct {
	before, after bytes.Buffer
	style         style
	choice        *random
	placed        [outcomeCount]int // markers written, by outcome
}

// document writes one document; the caller writes the separators.
func (p *printer) document(root node) {
	switch root := root.(type) {
	case mapping:
		p.mapping(root, 0, false)
	case sequence:
		p.sequence(root, 0)
	default:
		panic(fmt.Sprintf("a document cannot be a %T", root))
	}
}

// finish returns both texts, with the line ends, the byte-order mark and the end that the style asks for.
func (p *printer) finish() (before, after []byte) {
	return p.encode(p.before.Bytes()), p.encode(p.after.Bytes())
}

func (p *printer) encode(text []byte) []byte {
	if p.style.openEnd {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	if p.style.carriageReturns {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if p.style.byteOrderMark {
		text = append([]byte("\ufeff"), text...)
	}
	return text
}

// write adds text that no update touches.
func (p *printer) write(parts ...string) {
	for _, part := range parts {
		p.before.WriteString(part)
		p.after.WriteString(part)
	}
}

// mapping writes the entries at a column; with afterDash the first one continues the line of a dash.
func (p *printer) mapping(entries mapping, column int, afterDash bool) {
	for i, each := range entries {
		if i > 0 || !afterDash {
			p.betweenEntries(i, column)
			p.write(blanks(column))
		}
		p.write(each.key, ":")
		p.value(each.value, column)
	}
}

// betweenEntries writes the blank lines and comments that people leave between entries.
func (p *printer) betweenEntries(index, column int) {
	if index > 0 && p.style.blankLines && column <= p.style.indentation {
		if column == 0 && p.choice.chance(60) || p.choice.chance(10) {
			p.write("\n")
		}
	}
	if p.style.comments && p.choice.chance(5) {
		p.write(blanks(column), "# ", pick(p.choice, comments), "\n")
	}
}

// value writes what follows the colon of a key that stands at a column.
func (p *printer) value(value node, column int) {
	deeper := column + p.style.indentation
	switch value := value.(type) {
	case anchored:
		p.write(" &", value.name)
		p.value(value.node, column)
	case scalar:
		p.write(p.gap(), string(value), p.remark(), "\n")
	case marked:
		p.write(p.gap())
		p.marked(value, "")
	case mapping:
		p.write("\n")
		p.mapping(value, deeper, false)
	case sequence:
		p.write("\n")
		if p.style.wideSequences {
			column = deeper
		}
		p.sequence(value, column)
	case block:
		p.block(value, deeper)
	case flowSequence:
		p.write(p.gap(), p.flow("[", value, "]"), "\n")
	case flowMapping:
		p.write(p.gap(), p.flow("{", written(value), "}"), "\n")
	case openFlowMapping:
		p.openFlow(value, deeper)
	default:
		panic(fmt.Sprintf("no notation for a %T", value))
	}
}

func (p *printer) sequence(items sequence, column int) {
	dash := blanks(column) + "-" + blanks(p.style.dashGap)
	for _, item := range items {
		switch item := item.(type) {
		case scalar:
			p.write(dash, string(item), "\n")
		case marked:
			if item.commentAbove {
				p.write(blanks(column), item.comment, "\n")
			}
			p.write(dash)
			p.marked(item, "")
		case mapping:
			p.write(dash)
			p.mapping(item, column+1+p.style.dashGap, true)
		case flowMapping:
			p.write(dash, p.flow("{", written(item), "}"), "\n")
		default:
			panic(fmt.Sprintf("no notation for a %T in a sequence", item))
		}
	}
}

// marked writes a marked scalar; the separator (a comma, in flow collections) stands before the comment.
func (p *printer) marked(value marked, separator string) {
	p.before.WriteString(value.before)
	p.after.WriteString(value.after)
	p.placed[value.outcome]++
	p.write(separator)
	if !value.commentAbove {
		p.write(p.gap(), value.comment)
	}
	p.write("\n")
}

func (p *printer) block(value block, column int) {
	p.write(" ", value.header, "\n")
	for _, line := range value.lines {
		if line != "" {
			p.write(blanks(column), line)
		}
		p.write("\n")
	}
}

func (p *printer) openFlow(entries openFlowMapping, column int) {
	p.write(" {\n")
	for i, each := range entries {
		separator := ","
		if i == len(entries)-1 {
			separator = ""
		}
		p.write(blanks(column), each.key, ": ")
		switch value := each.value.(type) {
		case marked:
			p.marked(value, separator)
		case scalar:
			p.write(string(value), separator, "\n")
		default:
			panic(fmt.Sprintf("no notation for a %T in a flow mapping", value))
		}
	}
	p.write(blanks(column), "}\n")
}

// flow writes a flow collection on one line.
func (p *printer) flow(opening string, items []string, closing string) string {
	separator := ", "
	if p.style.innerSpacing && p.choice.chance(25) {
		separator = ",  "
	}
	padding := ""
	if p.style.airyFlow && opening == "{" && len(items) > 0 {
		padding = " "
	}
	return opening + padding + strings.Join(items, separator) + padding + closing
}

// written returns the entries of a one-line flow mapping as text.
func written(entries flowMapping) []string {
	items := make([]string, len(entries))
	for i, each := range entries {
		items[i] = each.key + ": " + string(each.value.(scalar))
	}
	return items
}

// gap is the room after a colon or before a comment.
func (p *printer) gap() string {
	if p.style.innerSpacing && p.choice.chance(8) {
		return blanks(p.choice.between(2, 4))
	}
	return " "
}

// remark is the comment that people leave behind some values.
func (p *printer) remark() string {
	if p.style.comments && p.choice.chance(4) {
		return p.gap() + "# " + pick(p.choice, remarks)
	}
	return ""
}

func blanks(count int) string {
	return strings.Repeat(" ", count)
}
