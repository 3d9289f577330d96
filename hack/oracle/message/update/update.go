// Package update stands for the package of that name in Flux: what an update changed. Where Flux goes by the order of
// hashes, it goes by that of keys.
package update

import (
	"cmp"
	"maps"
	"slices"

	"tagboat/hack/oracle/message/name"
	"tagboat/hack/oracle/template/types"
	"tagboat/hack/oracle/template/yaml"
)

// ObjectIdentifier tells an object from all others.
type ObjectIdentifier struct {
	yaml.ResourceIdentifier
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
	name.Reference
	policy types.NamespacedName
}

// NewImageRef makes one.
func NewImageRef(reference name.Reference, policy types.NamespacedName) ImageRef {
	return imageRef{reference, policy}
}

func (i imageRef) Policy() types.NamespacedName { return i.policy }
func (i imageRef) Repository() string           { return i.Context().RepositoryStr() }
func (i imageRef) Registry() string             { return i.Context().Registry.String() }

// byKey goes through a map of objects in their order.
func byKey[V any](objects map[ObjectIdentifier]V) []ObjectIdentifier {
	return slices.SortedFunc(maps.Keys(objects), func(a, b ObjectIdentifier) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
}

// Changes returns all changes, without duplicates.
func (r ResultV2) Changes() []Change {
	var changes []Change
	for _, file := range slices.Sorted(maps.Keys(r.FileChanges)) {
		objects := r.FileChanges[file]
		for _, object := range byKey(objects) {
			for _, change := range objects[object] {
				if !slices.Contains(changes, change) {
					changes = append(changes, change)
				}
			}
		}
	}
	return changes
}

// Objects returns the changes by object, over all files.
func (r ResultV2) Objects() ObjectChanges {
	joined := ObjectChanges{}
	for _, file := range slices.Sorted(maps.Keys(r.FileChanges)) {
		for object, changes := range r.FileChanges[file] {
			joined[object] = append(joined[object], changes...)
		}
	}
	return joined
}

// Images returns all images, without duplicates.
func (r Result) Images() []ImageRef {
	var images []ImageRef
	for _, file := range slices.Sorted(maps.Keys(r.Files)) {
		objects := r.Files[file].Objects
		for _, object := range byKey(objects) {
			images = addEach(images, objects[object])
		}
	}
	return images
}

// Objects returns the images by object: those of all files behind one another, so that an image that was set in two files
// of an object stands there twice.
func (r Result) Objects() map[ObjectIdentifier][]ImageRef {
	joined := map[ObjectIdentifier][]ImageRef{}
	for _, file := range slices.Sorted(maps.Keys(r.Files)) {
		for object, images := range r.Files[file].Objects {
			joined[object] = append(joined[object], images...)
		}
	}
	return joined
}

func addEach(images, more []ImageRef) []ImageRef {
	for _, image := range more {
		if !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	return images
}
