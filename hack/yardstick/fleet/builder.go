package main

import "fmt"

// builder makes the documents of one file.
type builder struct {
	choice  *random
	style   style
	pending []marker // markers that still have to be placed
	app     string
	team    string
	stage   string
}

// take returns the next marker to place.
func (b *builder) take() (marker, bool) {
	if len(b.pending) == 0 {
		return marker{}, false
	}
	first := b.pending[0]
	b.pending = b.pending[1:]
	return first, true
}

// takeFor returns the next marker, for the policy of a neighbouring one: the parts of one image
// reference are set by one policy.
func (b *builder) takeFor(neighbour marker) (marker, bool) {
	next, found := b.take()
	next.policy = neighbour.policy
	return next, found
}

// quoting chooses how a scalar is quoted.
func (b *builder) quoting() quoting {
	switch percent := b.choice.below(100); {
	case percent < 60:
		return plain
	case percent < 85:
		return doubleQuoted
	default:
		return singleQuoted
	}
}

// image is the image of a container: marked if a marker is left to place.
func (b *builder) image() node {
	if next, found := b.take(); found {
		return next.place(wholeReference, b.quoting(), b.choice)
	}
	return scalar(b.quoting().write(pick(b.choice, publicImages)))
}

// tagOrDigest is the entry that pins the version of the marker's image; it may use up a second marker.
func (b *builder) tagOrDigest(next marker, tagKey string) []entry {
	if next.policy.digest == "" || b.choice.chance(50) {
		return []entry{{tagKey, next.place(tagField, b.quoting(), b.choice)}}
	}
	return []entry{{"digest", next.place(digestField, b.quoting(), b.choice)}}
}

// parts writes an image as separate entries for name and tag (or digest), as Helm values and
// kustomizations have them.
func (b *builder) parts(nameKey, tagKey string) []entry {
	next, found := b.take()
	if !found {
		return []entry{
			text(nameKey, "quay.io/"+b.team+"/"+b.word()),
			text(tagKey, b.quoting().write(fmt.Sprintf("v%d.%d.%d", b.choice.below(4), b.choice.below(30), b.choice.below(10)))),
		}
	}
	version := b.tagOrDigest(next, tagKey)
	if second, found := b.takeFor(next); found {
		return append([]entry{{nameKey, second.place(nameField, b.quoting(), b.choice)}}, version...)
	}
	return append([]entry{text(nameKey, currentRegistry+next.policy.image)}, version...)
}

// metadata is the metadata of an object of the file's app.
func (b *builder) metadata(name string) entry {
	entries := []entry{text("name", name), text("namespace", b.team+"-"+b.stage)}
	if b.choice.chance(70) {
		entries = append(entries, b.labels("labels"))
	}
	if b.choice.chance(50) || b.style.emoji {
		entries = append(entries, under("annotations", b.annotations()...))
	}
	return under("metadata", entries...)
}

func (b *builder) labels(key string) entry {
	return b.short(key, text("app", b.app), text("team", b.team), text("stage", b.stage))
}

// short is a small mapping: in flow style if the person likes that.
func (b *builder) short(key string, entries ...entry) entry {
	if b.style.flowCollections {
		return entry{key, flowMapping(entries)}
	}
	return under(key, entries...)
}

// shortList is a small sequence of written scalars: in flow style if the person likes that.
func (b *builder) shortList(key string, items ...string) entry {
	if b.style.flowCollections {
		return entry{key, flowSequence(items)}
	}
	nodes := make([]node, len(items))
	for i, item := range items {
		nodes[i] = scalar(item)
	}
	return list(key, nodes...)
}

func (b *builder) annotations() []entry {
	entries := []entry{text("fleet.example.com/owner", b.team+"@example.com")}
	if b.style.foldedText {
		entries = append(entries, entry{"fleet.example.com/description", block{">-", b.prose(2)}})
	}
	if b.style.emoji {
		entries = append(entries, text("fleet.example.com/mood", "an emoji 🚀 in it"))
	}
	for range b.choice.below(3) {
		entries = append(entries, text("fleet.example.com/"+b.word(), b.value()))
	}
	return uniqueKeys(entries)
}

func (b *builder) prose(lines int) []string {
	written := make([]string, lines)
	for i := range written {
		written[i] = pick(b.choice, sentences)
	}
	return written
}

// word is a made-up name.
func (b *builder) word() string {
	return pick(b.choice, colours) + "-" + pick(b.choice, animals)
}

// value is a made-up scalar, written as people write them.
func (b *builder) value() string {
	switch b.choice.below(6) {
	case 0:
		return fmt.Sprintf(`"%d"`, b.choice.below(10000))
	case 1:
		return fmt.Sprintf("https://%s.example.com:%d/%s", b.word(), b.choice.between(1024, 9999), pick(b.choice, animals))
	case 2:
		return "'" + pick(b.choice, levels) + "'"
	case 3:
		return fmt.Sprintf(`"%s, %s and äöü"`, pick(b.choice, colours), pick(b.choice, animals))
	default:
		return b.word()
	}
}

// uniqueKeys keeps the first entry of each key.
func uniqueKeys(entries []entry) []entry {
	seen := make(map[string]bool, len(entries))
	kept := entries[:0]
	for _, each := range entries {
		if !seen[each.key] {
			seen[each.key] = true
			kept = append(kept, each)
		}
	}
	return kept
}
