// Package setting updates a tree of files as the known image updaters do: it parses a marked file with kyaml, sets
// the marked scalars in the parsed tree and writes the tree out again.
package setting

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// imagePolicy is the part of an ImagePolicy that an update needs.
type imagePolicy struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Status struct {
		LatestRef *reference `yaml:"latestRef"`
	} `yaml:"status"`
}

// reference is the image that a policy has decided for.
type reference struct {
	Name   string `yaml:"name"`
	Tag    string `yaml:"tag"`
	Digest string `yaml:"digest"`
}

func (r reference) String() string {
	if r.Digest == "" {
		return r.Name + ":" + r.Tag
	}
	return r.Name + ":" + r.Tag + "@" + r.Digest
}

// ReadPolicies maps each possible target of a marker to its value, for all policies of the namespace.
func ReadPolicies(directory, namespace string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]string)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var policy imagePolicy
		if err := yaml.Unmarshal(content, &policy); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		latest := policy.Status.LatestRef
		if policy.Kind != "ImagePolicy" || policy.Metadata.Namespace != namespace || latest == nil {
			continue
		}
		target := namespace + ":" + policy.Metadata.Name
		wanted[target] = latest.String()
		wanted[target+":name"] = latest.Name
		wanted[target+":tag"] = latest.Tag
		wanted[target+":digest"] = latest.Digest
	}
	return wanted, nil
}
