// Package update stands for the package of that name in Flux: what an update changed.
package update

import (
	"strings"

	"tagboat/hack/oracle/template/types"
	"tagboat/hack/oracle/template/yaml"
)

// ObjectIdentifier tells an object from all others.
type ObjectIdentifier struct {
	yaml.ResourceIdentifier `json:",inline"`
}

// Change is one value that was set.
type Change struct {
	OldValue string
	NewValue string
	Setter   string
}

// ObjectChanges are the changes by the objects in which they were made.
type ObjectChanges map[ObjectIdentifier][]Change

// ResultV2 has the changes of an update.
type ResultV2 struct {
	ImageResult Result
	FileChanges map[string]ObjectChanges
}

// Result says which images an update set.
type Result struct {
	Files map[string]FileResult
}

// FileResult says which images an update set in a file.
type FileResult struct {
	Objects map[ObjectIdentifier][]ImageRef
}

// ImageRef is an image that was set.
type ImageRef interface {
	String() string
	Identifier() string
	Repository() string
	Registry() string
	Name() string
	Policy() types.NamespacedName
}

type imageRef struct {
	registry   string
	repository string
	identifier string
	policy     types.NamespacedName
}

// NewImageRef makes one.
func NewImageRef(registry, repository, identifier string, policy types.NamespacedName) ImageRef {
	return imageRef{registry, repository, identifier, policy}
}

func (i imageRef) String() string {
	return strings.TrimPrefix(i.registry, "index.docker.io") + "/" + i.repository + ":" + i.identifier
}

func (i imageRef) Identifier() string           { return i.identifier }
func (i imageRef) Repository() string           { return i.repository }
func (i imageRef) Registry() string             { return i.registry }
func (i imageRef) Name() string                 { return i.registry + "/" + i.repository + ":" + i.identifier }
func (i imageRef) Policy() types.NamespacedName { return i.policy }

// Changes returns all changes, without duplicates.
func (r ResultV2) Changes() []Change {
	changes := []Change{}
	seen := map[Change]bool{}
	for _, file := range []string{"apps/api.yaml", "apps/web.yaml"} {
		for _, object := range Order {
			for _, change := range r.FileChanges[file][object] {
				if !seen[change] {
					seen[change] = true
					changes = append(changes, change)
				}
			}
		}
	}
	return changes
}

// Objects returns the changes by object, over all files.
func (r ResultV2) Objects() ObjectChanges {
	objects := ObjectChanges{}
	for _, file := range []string{"apps/api.yaml", "apps/web.yaml"} {
		for object, changes := range r.FileChanges[file] {
			objects[object] = append(objects[object], changes...)
		}
	}
	return objects
}

// Images returns all images, in the order of the files.
func (r Result) Images() []ImageRef {
	images := []ImageRef{}
	for _, file := range []string{"apps/api.yaml", "apps/web.yaml"} {
		for _, object := range Order {
			images = append(images, r.Files[file].Objects[object]...)
		}
	}
	return images
}

// Objects returns the images by object.
func (r Result) Objects() map[ObjectIdentifier][]ImageRef {
	objects := map[ObjectIdentifier][]ImageRef{}
	for _, file := range r.Files {
		for object, images := range file.Objects {
			objects[object] = append(objects[object], images...)
		}
	}
	return objects
}

// Order holds the objects of the sample, for an order that does not change.
var Order []ObjectIdentifier
