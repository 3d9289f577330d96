package setting

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// setMarked sets all marked scalars at and below a node to their wanted values, and returns how many of
// them had another value before.
func setMarked(node *yaml.Node, wanted map[string]string) int {
	set := 0
	switch node.Kind {
	case yaml.MappingNode:
		for i := 1; i < len(node.Content); i += 2 {
			set += setMarked(node.Content[i], wanted)
		}
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, child := range node.Content {
			set += setMarked(child, wanted)
		}
	case yaml.ScalarNode:
		value, marked := wanted[markerTarget(node)]
		if marked && value != node.Value {
			setText(node, value)
			set++
		}
	case yaml.AliasNode: // its anchor is visited where it stands
	}
	return set
}

// setText makes a scalar hold a text. Its quotes stay; a plain one is quoted where a reader of YAML 1.1
// or 1.2 would take the text for another type.
func setText(node *yaml.Node, value string) {
	node.Value = value
	node.Tag = yaml.NodeTagString
	if node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 && yaml.IsValueNonString(value) {
		node.Style = yaml.DoubleQuotedStyle
	}
}

// markerTarget returns the target of the marker of a scalar, such as "namespace:policy:tag", or nothing. A
// comment on the line decides; only where there is none does the one above.
func markerTarget(node *yaml.Node) string {
	comment := node.LineComment
	if comment == "" {
		comment = node.HeadComment
	}
	if !strings.Contains(comment, "$imagepolicy") {
		return ""
	}
	var members map[string]string
	if json.Unmarshal([]byte(strings.TrimLeft(comment, "#")), &members) != nil {
		return ""
	}
	return members["$imagepolicy"]
}
