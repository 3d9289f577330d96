// Package source stands for the package of that name in Flux: the data of a commit message.
package source

import (
	"encoding/json"
	"strings"

	"tagboat/hack/oracle/message/name"
	"tagboat/hack/oracle/message/update"
	"tagboat/hack/oracle/template/types"
	"tagboat/hack/oracle/template/yaml"
)

// TemplateData is the data of a commit message.
type TemplateData struct {
	AutomationObject types.NamespacedName
	Updated          update.Result
	Changed          update.ResultV2
	Values           map[string]string
}

// recorded is a result as Tagboat prints it.
type recorded struct {
	Automation struct{ Namespace, Name string }
	Values     map[string]string
	Policies   map[string]struct{ Name, Tag, Digest string }
	Changes    map[string]struct {
		Objects []struct {
			APIVersion, Kind, Namespace, Name string
			Changes                           []update.Change
		}
	}
}

// Read makes data of a result.
func Read(text []byte) (TemplateData, error) {
	from := recorded{}
	if err := json.Unmarshal(text, &from); err != nil {
		return TemplateData{}, err
	}
	data := TemplateData{
		AutomationObject: types.NamespacedName{Namespace: from.Automation.Namespace, Name: from.Automation.Name},
		Updated:          update.Result{Files: map[string]update.FileResult{}},
		Changed:          update.ResultV2{FileChanges: map[string]update.ObjectChanges{}},
		Values:           from.Values,
	}
	for file, objects := range from.Changes {
		changes := update.ObjectChanges{}
		images := map[update.ObjectIdentifier][]update.ImageRef{}
		for _, object := range objects.Objects {
			key := update.ObjectIdentifier{ResourceIdentifier: yaml.ResourceIdentifier{
				TypeMeta: yaml.TypeMeta{APIVersion: object.APIVersion, Kind: object.Kind},
				NameMeta: yaml.NameMeta{Name: object.Name, Namespace: object.Namespace},
			}}
			changes[key] = object.Changes
			found := update.Result{Files: map[string]update.FileResult{"": {
				Objects: map[update.ObjectIdentifier][]update.ImageRef{key: imagesOf(from, object.Changes)},
			}}}.Images()
			if len(found) > 0 {
				images[key] = found
			}
		}
		data.Changed.FileChanges[file] = changes
		data.Updated.Files[file] = update.FileResult{Objects: images}
	}
	data.Changed.ImageResult = data.Updated
	return data, nil
}

// imagesOf returns the images of the policies that made changes.
func imagesOf(from recorded, changes []update.Change) []update.ImageRef {
	images := []update.ImageRef{}
	for _, change := range changes {
		parts := strings.SplitN(change.Setter, ":", 3)
		image, found := from.Policies[parts[1]]
		if !found {
			continue
		}
		reference := name.New(image.Name, image.Tag, image.Digest)
		images = append(images, update.NewImageRef(reference, types.NamespacedName{Namespace: parts[0], Name: parts[1]}))
	}
	return images
}
