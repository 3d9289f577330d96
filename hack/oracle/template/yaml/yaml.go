// Package yaml stands for sigs.k8s.io/kustomize/kyaml/yaml.
package yaml

// TypeMeta says of which kind an object is.
type TypeMeta struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// NameMeta says how an object is called.
type NameMeta struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// ResourceIdentifier tells an object from all others.
type ResourceIdentifier struct {
	TypeMeta `json:",inline"`
	NameMeta `json:",inline"`
}
