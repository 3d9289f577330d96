package main

import "fmt"

// workload is a Deployment, StatefulSet or DaemonSet.
func (b *builder) workload(kind string) mapping {
	specification := []entry{text("replicas", fmt.Sprint(b.choice.between(1, 9)))}
	if kind == "DaemonSet" {
		specification = nil
	}
	specification = append(specification,
		under("selector", b.short("matchLabels", text("app", b.app))),
		under("template",
			under("metadata", b.labels("labels")),
			under("spec", b.podSpecification()...),
		))
	return mapping{text("apiVersion", "apps/v1"), text("kind", kind), b.metadata(b.app), under("spec", specification...)}
}

// cronJob is a CronJob.
func (b *builder) cronJob() mapping {
	return mapping{
		text("apiVersion", "batch/v1"),
		text("kind", "CronJob"),
		b.metadata(b.app),
		under("spec",
			text("schedule", fmt.Sprintf(`"%d %d * * *"`, b.choice.below(60), b.choice.below(24))),
			text("concurrencyPolicy", "Forbid"),
			under("jobTemplate", under("spec", under("template", under("spec",
				append(b.podSpecification(), text("restartPolicy", "OnFailure"))...)))),
		),
	}
}

func (b *builder) podSpecification() []entry {
	entries := []entry{text("serviceAccountName", b.app)}
	if len(b.pending) > 1 && b.choice.chance(40) {
		entries = append(entries, list("initContainers", b.container("prepare")))
	}
	var containers sequence
	for len(containers) == 0 || len(b.pending) > 0 {
		containers = append(containers, b.container(b.app))
	}
	for range b.choice.below(3) {
		containers = append(containers, b.container(b.word()))
	}
	entries = append(entries, entry{"containers", containers})
	if b.choice.chance(40) {
		entries = append(entries, b.volumes())
	}
	if b.choice.chance(25) {
		entries = append(entries, b.short("nodeSelector", text("kubernetes.io/os", "linux"), text("pool", pick(b.choice, colours))))
	}
	return entries
}

func (b *builder) container(name string) mapping {
	image := b.image()
	if b.style.anchors {
		image = anchored{"image-" + name, image}
	}
	entries := mapping{text("name", name), {"image", image}}
	if b.choice.chance(50) {
		entries = append(entries, text("imagePullPolicy", "IfNotPresent"))
	}
	entries = append(entries, b.arguments()...)
	entries = append(entries, b.environment())
	if b.style.anchors {
		variables := entries[len(entries)-1].value.(sequence)
		alias := mapping{text("name", "OWN_IMAGE"), text("value", "*image-"+name)}
		entries[len(entries)-1].value = append(variables, alias)
	}
	if b.choice.chance(60) {
		entries = append(entries, b.ports())
	}
	if b.choice.chance(65) {
		entries = append(entries, b.resources())
	}
	if b.choice.chance(55) {
		entries = append(entries, b.probe("readinessProbe"))
	}
	if b.choice.chance(35) {
		entries = append(entries, b.probe("livenessProbe"))
	}
	return entries
}

// arguments may hold an image too, as operators take them: then the marker stands above or behind it.
func (b *builder) arguments() []entry {
	port := fmt.Sprintf(`"%d"`, b.choice.between(1024, 9999))
	if len(b.pending) == 0 || b.choice.chance(50) {
		return []entry{b.shortList("args", `"--port"`, port, `"--verbose"`)}
	}
	next, _ := b.take()
	image := next.place(wholeReference, b.quoting(), b.choice)
	image.commentAbove = b.choice.chance(50)
	return []entry{list("args", scalar(`"--port"`), scalar(port), scalar("--runner-image"), image)}
}

func (b *builder) environment() entry {
	count := b.choice.between(2, 12)
	items := make(sequence, 0, count+1)
	first := b.choice.below(len(variables))
	for i := range count {
		name := variables[(first+i)%len(variables)]
		if b.choice.chance(20) {
			secret := b.short("secretKeyRef", text("name", b.app+"-secrets"), text("key", pick(b.choice, animals)))
			items = append(items, mapping{text("name", name), under("valueFrom", secret)})
			continue
		}
		items = append(items, mapping{text("name", name), text("value", b.value())})
	}
	return entry{"env", items}
}

func (b *builder) ports() entry {
	http := []entry{text("name", "http"), text("containerPort", fmt.Sprint(b.choice.between(1024, 9999))), text("protocol", "TCP")}
	if b.style.flowCollections {
		return list("ports", flowMapping(http))
	}
	return list("ports", mapping(http))
}

func (b *builder) resources() entry {
	memory := fmt.Sprintf("%dMi", 64*b.choice.between(1, 32))
	return under("resources",
		b.short("requests", text("cpu", fmt.Sprintf("%dm", 50*b.choice.between(1, 20))), text("memory", memory)),
		b.short("limits", text("memory", memory)))
}

func (b *builder) probe(name string) entry {
	return under(name,
		b.short("httpGet", text("path", "/"+pick(b.choice, animals)), text("port", "http")),
		text("initialDelaySeconds", fmt.Sprint(b.choice.between(1, 60))),
		text("periodSeconds", fmt.Sprint(b.choice.between(5, 30))))
}

func (b *builder) volumes() entry {
	return list("volumes",
		mapping{text("name", "scratch"), {"emptyDir", flowMapping{}}},
		mapping{text("name", "settings"), b.short("configMap", text("name", b.app+"-settings"))})
}
