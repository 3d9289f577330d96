package setting

import "testing"

func TestUpdateDocuments(t *testing.T) {
	wanted := map[string]string{"fleet:web": "example.com/web:v2", "fleet:web:tag": "1.10"}
	cases := map[string]struct {
		before, after string
		set           int
	}{
		"plain":             {"a: x # {\"$imagepolicy\": \"fleet:web\"}\n", "a: example.com/web:v2 # {\"$imagepolicy\": \"fleet:web\"}\n", 1},
		"quoted":            {"a: 'x' # {\"$imagepolicy\": \"fleet:web\"}\n", "a: 'example.com/web:v2' # {\"$imagepolicy\": \"fleet:web\"}\n", 1},
		"reads as number":   {"a: v1 # {\"$imagepolicy\": \"fleet:web:tag\"}\n", "a: \"1.10\" # {\"$imagepolicy\": \"fleet:web:tag\"}\n", 1},
		"comment above":     {"a:\n- x\n# {\"$imagepolicy\": \"fleet:web\"}\n- x\n", "a:\n- x\n# {\"$imagepolicy\": \"fleet:web\"}\n- example.com/web:v2\n", 1},
		"current":           {"a: example.com/web:v2 # {\"$imagepolicy\": \"fleet:web\"}\n", "", 0},
		"another namespace": {"a: x # {\"$imagepolicy\": \"other:web\"}\n", "", 0},
	}
	for name, each := range cases {
		t.Run(name, func(t *testing.T) {
			after, set, err := updateDocuments([]byte(each.before), wanted)
			if err != nil {
				t.Fatal(err)
			}
			if string(after) != each.after || set != each.set {
				t.Errorf("got %d, %q; want %d, %q", set, after, each.set, each.after)
			}
		})
	}
}

func TestUpdateDocumentsNeedsMappings(t *testing.T) {
	for _, content := range []string{"- value: x # {\"$imagepolicy\": \"fleet:web\"}\n", "a: {{ .b }}-c\n"} {
		if _, _, err := updateDocuments([]byte(content), nil); err == nil {
			t.Errorf("%q can be read", content)
		}
	}
}
