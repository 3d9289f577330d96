package main

// node is a piece of YAML as a person would write it: unlike a parsed tree it keeps the notation.
type node interface{ isNode() }

type (
	// mapping is a block mapping in written order.
	mapping []entry

	// sequence is a block sequence.
	sequence []node

	// scalar is the text of an unmarked scalar, quotes included.
	scalar string

	// block is a literal ("|") or folded (">") text; header holds the indicators.
	block struct {
		header string
		lines  []string
	}

	// flowSequence is a one-line flow sequence of written scalars.
	flowSequence []string

	// flowMapping is a flow mapping on one line; its values are scalars.
	flowMapping []entry

	// openFlowMapping is a flow mapping with one entry a line, so that its entries can be marked.
	openFlowMapping []entry

	// anchored puts an anchor on a node.
	anchored struct {
		name string
		node node
	}

	// marked is a scalar with a marker: as it stands, and as it has to read after the update.
	marked struct {
		before, after string
		comment       string
		commentAbove  bool // the marker stands on its own line above (in sequences only)
		outcome       outcome
	}
)

// entry is a key with its value.
type entry struct {
	key   string
	value node
}

func (mapping) isNode()         {}
func (sequence) isNode()        {}
func (scalar) isNode()          {}
func (block) isNode()           {}
func (flowSequence) isNode()    {}
func (flowMapping) isNode()     {}
func (openFlowMapping) isNode() {}
func (anchored) isNode()        {}
func (marked) isNode()          {}

// text is an entry whose value is a scalar, written as given.
func text(key, value string) entry {
	return entry{key: key, value: scalar(value)}
}

// under is an entry whose value is a mapping.
func under(key string, entries ...entry) entry {
	return entry{key: key, value: mapping(entries)}
}

// list is an entry whose value is a block sequence.
func list(key string, items ...node) entry {
	return entry{key: key, value: sequence(items)}
}
