package main

import "fmt"

// field is the part of an image reference that a marker asks for.
type field string

const (
	wholeReference field = ""
	nameField      field = ":name"
	tagField       field = ":tag"
	digestField    field = ":digest"
)

// outcome is the expected result for a marked scalar.
type outcome int

const (
	moves          outcome = iota // takes the latest value of its policy
	alreadyCurrent                // has the latest value
	otherNamespace                // its policy belongs to a namespace that is not updated
	unknownPolicy                 // names a policy that does not exist
	outcomeCount
)

// marker is a marker that has to be placed somewhere in a file.
type marker struct {
	policy  policy
	outcome outcome
}

// quoting is how a scalar is written.
type quoting int

const (
	plain quoting = iota
	singleQuoted
	doubleQuoted
)

func (q quoting) write(value string) string {
	switch q {
	case singleQuoted:
		return "'" + value + "'"
	case doubleQuoted:
		return `"` + value + `"`
	default:
		return value
	}
}

// place makes the marked scalar for a field of the marker's policy.
func (m marker) place(wanted field, style quoting, choice *random) marked {
	before, after := m.policy.former(wanted, choice), m.policy.latest(wanted)
	target := policyNamespace + ":" + m.policy.name
	beforeStyle, afterStyle := style, style
	readsAsOtherType := wanted == tagField && m.policy.numeric
	if style == plain && readsAsOtherType {
		afterStyle = doubleQuoted
	}
	switch m.outcome {
	case moves:
	case alreadyCurrent:
		before, beforeStyle = after, afterStyle
	case otherNamespace:
		target = "another-team:" + m.policy.name
		after, afterStyle = before, beforeStyle
	case unknownPolicy:
		target = policyNamespace + ":retired-" + m.policy.name
		after, afterStyle = before, beforeStyle
	default:
		panic(fmt.Sprintf("unknown outcome %d", m.outcome))
	}
	return marked{
		before:  beforeStyle.write(before),
		after:   afterStyle.write(after),
		comment: markerComment(target+string(wanted), choice),
		outcome: m.outcome,
	}
}

// markerComment writes a marker, now and then in one of the less common spellings.
func markerComment(target string, choice *random) string {
	spelling := `# {"$imagepolicy": "%s"}`
	switch rare := choice.below(100); {
	case rare < 4:
		spelling = `# {"$imagepolicy":"%s"}`
	case rare < 6:
		spelling = `#{"$imagepolicy": "%s"}`
	case rare < 8:
		spelling = `## { "$imagepolicy" : "%s" }`
	case rare < 10:
		spelling = `# {"$imagepolicy": "%s", "owner": "platform"}`
	}
	return fmt.Sprintf(spelling, target)
}
