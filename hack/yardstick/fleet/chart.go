package main

import "strings"

// chartTemplate is a template of a Helm chart with a marker in it: a file that is no YAML, because its
// actions stand outside of quotes.
func (b *builder) chartTemplate() string {
	next, _ := b.take()
	image := next.place(wholeReference, b.quoting(), b.choice)
	lines := []string{
		"apiVersion: apps/v1",
		"kind: Deployment",
		"metadata:",
		`  name: {{ include "` + b.app + `.fullname" . }}-` + pick(b.choice, animals),
		"  labels:",
		`    {{- include "` + b.app + `.labels" . | nindent 4 }}`,
		"spec:",
		"  replicas: {{ .Values.replicaCount }}",
		"  template:",
		"    spec:",
		"      containers:",
		"        - name: {{ .Chart.Name }}",
		"          image: " + image.before + " " + image.comment,
		"          {{- with .Values.resources }}",
		"          resources:",
		"            {{- toYaml . | nindent 12 }}",
		"          {{- end }}",
	}
	if b.choice.chance(50) {
		lines = append([]string{"{{- if .Values.enabled }}"}, append(lines, "{{- end }}")...)
	}
	return strings.Join(lines, "\n") + "\n"
}
