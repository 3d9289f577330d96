package main

import "fmt"

// helmRelease is a Flux HelmRelease with values.
func (b *builder) helmRelease() mapping {
	return mapping{
		text("apiVersion", "helm.toolkit.fluxcd.io/v2"),
		text("kind", "HelmRelease"),
		b.metadata(b.app),
		under("spec",
			text("interval", fmt.Sprintf("%dm", b.choice.between(1, 60))),
			under("chart", under("spec",
				text("chart", pick(b.choice, animals)),
				text("version", fmt.Sprintf(`"%d.%d.x"`, b.choice.below(9), b.choice.below(20))),
				under("sourceRef", text("kind", "HelmRepository"), text("name", b.team)),
			)),
			under("values", b.values()...),
		),
	}
}

// helmValues is a values file of a Helm chart: no object of Kubernetes.
func (b *builder) helmValues() mapping {
	return mapping(b.values())
}

func (b *builder) values() []entry {
	entries := []entry{b.imageValues("image")}
	if b.choice.chance(60) {
		entries = append(entries, text("replicaCount", fmt.Sprint(b.choice.between(1, 9))))
	}
	if b.style.anchors {
		entries = append(entries,
			entry{"defaults", anchored{"defaults", mapping{text("logLevel", pick(b.choice, levels)), text("tracing", "true")}}},
			under(pick(b.choice, animals)+"Settings", text("<<", "*defaults"), text("region", pick(b.choice, regions))))
	}
	entries = append(entries, b.resources(), b.environment())
	for len(b.pending) > 0 || b.choice.chance(45) {
		component := pick(b.choice, animals)
		entries = append(entries, under(component+fmt.Sprint(len(entries)),
			text("enabled", "true"), b.imageValues("image"), b.resources(), text("size", fmt.Sprintf("%dGi", b.choice.between(1, 99)))))
	}
	entries = append(entries, under("ingress",
		text("enabled", "yes"), b.shortList("hosts", b.app+".example.com", b.word()+".example.com"), under("annotations", b.annotations()...)))
	if b.choice.chance(30) {
		entries = append(entries, entry{"extraConfiguration", block{"|", b.settingLines(b.choice.between(4, 30))}})
	}
	return entries
}

// imageValues is an image in parts; now and then a flow mapping with one entry a line.
func (b *builder) imageValues(key string) entry {
	parts := append(b.parts("repository", "tag"), text("pullPolicy", "IfNotPresent"))
	if b.style.flowCollections && b.choice.chance(40) {
		return entry{key, openFlowMapping(parts)}
	}
	return under(key, parts...)
}
