package main

import (
	"fmt"
	"strings"
)

// configMap is a ConfigMap with single values, settings in a literal text and prose in a folded one.
func (b *builder) configMap() mapping {
	var data []entry
	for len(b.pending) > 0 {
		next, _ := b.take()
		key := fmt.Sprintf("RUNNER_%d", len(data))
		if b.choice.chance(50) {
			data = append(data, entry{key + "_IMAGE", next.place(wholeReference, b.quoting(), b.choice)})
		} else {
			data = append(data, entry{key + "_VERSION", next.place(tagField, doubleQuoted, b.choice)})
		}
	}
	first := b.choice.below(len(variables))
	for i := range b.choice.between(3, 12) {
		data = append(data, text(variables[(first+i)%len(variables)], b.value()))
	}
	data = append(data, entry{"motd", block{">", b.prose(b.choice.between(1, 4))}})
	data = append(data, entry{"settings.ini", block{"|", b.settingLines(b.choice.between(10, 80))}})
	return mapping{text("apiVersion", "v1"), text("kind", "ConfigMap"), b.metadata(b.app + "-settings"), under("data", data...)}
}

// settingLines are lines of a made-up settings file, some of which look like YAML or like comments.
func (b *builder) settingLines(count int) []string {
	lines := make([]string, count)
	for i := range lines {
		switch b.choice.below(8) {
		case 0:
			lines[i] = "[" + b.word() + "]"
		case 1:
			lines[i] = "# image: " + pick(b.choice, publicImages)
		case 2:
			lines[i] = ""
		default:
			lines[i] = strings.ReplaceAll(b.word(), "-", ".") + " = " + b.value()
		}
	}
	lines[0] = "; " + b.app
	lines[count-1] = "end = true"
	return lines
}

// dashboard is a ConfigMap with a large JSON text: the few big files of a fleet.
func (b *builder) dashboard() mapping {
	lines := []string{"{", `  "title": "` + b.app + `",`, `  "panels": [`}
	for panel := range b.choice.between(40, 2500) {
		lines = append(lines,
			fmt.Sprintf(`    {"id": %d, "type": "timeseries", "title": "%s",`, panel, b.word()),
			fmt.Sprintf(`     "expr": "sum(rate(%s_total{team=\"%s\"}[5m])) by (pod)"},`, pick(b.choice, animals), b.team))
	}
	lines = append(lines, "    {}", "  ]", "}")
	return mapping{
		text("apiVersion", "v1"), text("kind", "ConfigMap"), b.metadata(b.app + "-dashboard"),
		under("data", entry{"dashboard.json", block{"|", lines}}),
	}
}

// alertRules is a PrometheusRule; its quoted templates look like Helm's and are YAML all the same.
func (b *builder) alertRules() mapping {
	var rules sequence
	for range b.choice.between(2, 9) {
		rules = append(rules, mapping{
			text("alert", pick(b.choice, []string{"TooSlow", "TooManyErrors", "DiskAlmostFull", "QueueGrows"})),
			{"expr", block{"|", []string{"histogram_quantile(0.99,", "  sum(rate(" + pick(b.choice, animals) + "_bucket[5m])) by (le)", ") > 0.5"}}},
			text("for", fmt.Sprintf("%dm", b.choice.between(1, 30))),
			b.short("labels", text("severity", pick(b.choice, levels)), text("team", b.team)),
			under("annotations",
				text("summary", `"{{ $labels.pod }} has been at {{ $value }} for a while"`),
				entry{"description", block{">-", b.prose(2)}}),
		})
	}
	return mapping{
		text("apiVersion", "monitoring.coreos.com/v1"), text("kind", "PrometheusRule"), b.metadata(b.app),
		under("spec", list("groups", mapping{text("name", b.app), {"rules", rules}})),
	}
}
