package main

// kustomization is a kustomization with images.
func (b *builder) kustomization() mapping {
	entries := mapping{
		text("apiVersion", "kustomize.config.k8s.io/v1beta1"),
		text("kind", "Kustomization"),
		text("namespace", b.team+"-"+b.stage),
		b.shortList("resources", "../../base/"+b.app, b.word()+".yaml", b.word()+".yaml"),
	}
	var images sequence
	for len(images) == 0 || len(b.pending) > 0 || b.choice.chance(40) {
		images = append(images, mapping(append([]entry{text("name", b.word())}, b.parts("newName", "newTag")...)))
	}
	entries = append(entries, entry{"images", images})
	if b.choice.chance(40) {
		entries = append(entries, list("labels", mapping{b.labels("pairs"), text("includeSelectors", "false")}))
	}
	if b.choice.chance(40) {
		entries = append(entries, list("patches", b.inlinePatch()))
	}
	if b.choice.chance(30) {
		generated := mapping{text("name", b.app+"-settings"), list("literals", scalar("COLOUR="+pick(b.choice, colours)), scalar("LEVEL="+pick(b.choice, levels)))}
		entries = append(entries, list("configMapGenerator", generated))
	}
	return entries
}

// inlinePatch is a patch as a text inside of a kustomization.
func (b *builder) inlinePatch() mapping {
	return mapping{
		under("target", text("kind", "Deployment"), text("name", b.app)),
		{"patch", block{"|-", []string{"- op: add", "  path: /metadata/labels/colour", "  value: " + pick(b.choice, colours)}}},
	}
}

// jsonPatch is a file with a JSON patch: its root is a sequence.
func (b *builder) jsonPatch() sequence {
	var operations sequence
	for len(operations) == 0 || len(b.pending) > 0 || b.choice.chance(30) {
		operations = append(operations, mapping{
			text("op", "replace"), text("path", "/spec/template/spec/containers/0/image"), {"value", b.image()},
		})
	}
	return append(operations, mapping{
		text("op", "add"), text("path", "/metadata/annotations/fleet.example.com~1colour"), text("value", pick(b.choice, colours)),
	})
}
