package main

// style is the formatting of a file.
type style struct {
	indentation      int  // blanks a level
	dashGap          int  // blanks after the dash of a sequence item
	wideSequences    bool // sequences are indented under their key
	leadingSeparator bool // the file begins with ---
	blankLines       bool // blank lines between sections
	innerSpacing     bool // more than one blank after some colons and before some comments
	comments         bool // lines of comment, and remarks behind values
	flowCollections  bool // short collections on one line
	airyFlow         bool // blanks inside of braces
	foldedText       bool // descriptions are folded texts
	anchors          bool // anchors and aliases where they save repetition
	emoji            bool // an emoji in a description
	byteOrderMark    bool // the file begins with one
	carriageReturns  bool // lines end in CR LF
	openEnd          bool // no newline at the end of the file
}

func chooseStyle(choice *random) style {
	chosen := style{
		indentation:      2,
		dashGap:          1,
		wideSequences:    choice.chance(45),
		leadingSeparator: choice.chance(28),
		blankLines:       choice.chance(25),
		innerSpacing:     choice.chance(45),
		comments:         choice.chance(35),
		flowCollections:  choice.chance(40),
		airyFlow:         choice.chance(50),
		foldedText:       choice.chance(30),
		anchors:          choice.chance(8),
		emoji:            choice.chance(2),
		byteOrderMark:    choice.chance(1),
		carriageReturns:  choice.chance(2),
		openEnd:          choice.chance(2),
	}
	if choice.chance(6) {
		chosen.indentation = 4
	}
	if choice.chance(4) {
		chosen.dashGap = 3
	}
	return chosen
}
