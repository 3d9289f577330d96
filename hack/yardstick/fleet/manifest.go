package main

import "fmt"

const automationManifest = `apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata:
  name: fleet
  namespace: %s
spec:
  interval: 1m
  sourceRef:
    kind: GitRepository
    name: fleet
  git:
    commit:
      author:
        name: Tagboat
        email: tagboat@example.com
  update:
    path: ./
    strategy: Setters
`

// policyManifest takes name, namespace, name, image, tag.
const policyManifest = `apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata:
  name: %s
  namespace: %s
spec:
  imageRepositoryRef:
    name: %s
  policy:
    alphabetical:
      order: asc
status:
  latestRef:
    name: %s
    tag: "%s"
`

// manifests returns the manifests of the automation and of all policies, with their file names.
func manifests() []file {
	written := []file{{path: "automation.yaml", before: fmt.Appendf(nil, automationManifest, policyNamespace)}}
	for _, each := range policies {
		manifest := fmt.Sprintf(policyManifest, each.name, policyNamespace, each.name, each.latest(nameField), each.tag)
		if each.digest != "" {
			manifest += "    digest: " + each.digest + "\n"
		}
		written = append(written, file{path: "policy-" + each.name + ".yaml", before: []byte(manifest)})
	}
	return written
}
