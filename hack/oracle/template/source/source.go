// Package source stands for the package of that name in Flux: the data of a commit message.
package source

import (
	"tagboat/hack/oracle/template/types"
	"tagboat/hack/oracle/template/update"
	"tagboat/hack/oracle/template/yaml"
)

// TemplateData is the data of a commit message.
type TemplateData struct {
	AutomationObject types.NamespacedName
	Updated          update.Result
	Changed          update.ResultV2
	Values           map[string]string
}

func object(version, kind, namespace, name string) update.ObjectIdentifier {
	return update.ObjectIdentifier{ResourceIdentifier: yaml.ResourceIdentifier{
		TypeMeta: yaml.TypeMeta{APIVersion: version, Kind: kind},
		NameMeta: yaml.NameMeta{Name: name, Namespace: namespace},
	}}
}

// Sample returns the data of an update of three objects in two files.
func Sample() TemplateData {
	web := object("apps/v1", "Deployment", "prod", "web")
	api := object("apps/v1", "Deployment", "prod", "api")
	job := object("batch/v1", "CronJob", "", "job")
	update.Order = []update.ObjectIdentifier{api, web, job}
	policy := types.NamespacedName{Namespace: "flux-system", Name: "podinfo"}
	image := update.NewImageRef("ghcr.io", "stefanprodan/podinfo", "6.7.0", policy)
	tool := update.NewImageRef("index.docker.io", "library/busybox", "1.36", types.NamespacedName{Namespace: "flux-system", Name: "busybox"})
	return TemplateData{
		AutomationObject: types.NamespacedName{Namespace: "flux-system", Name: "apps"},
		Updated: update.Result{Files: map[string]update.FileResult{
			"apps/web.yaml": {Objects: map[update.ObjectIdentifier][]update.ImageRef{web: {image}}},
			"apps/api.yaml": {Objects: map[update.ObjectIdentifier][]update.ImageRef{job: {tool}}},
		}},
		Changed: update.ResultV2{
			FileChanges: map[string]update.ObjectChanges{
				"apps/web.yaml": {web: {
					{OldValue: "ghcr.io/stefanprodan/podinfo:6.6.0", NewValue: "ghcr.io/stefanprodan/podinfo:6.7.0", Setter: "flux-system:podinfo"},
					{OldValue: "6.6.0", NewValue: "6.7.0", Setter: "flux-system:podinfo:tag"},
				}},
				"apps/api.yaml": {
					api: {{OldValue: "6.6.0", NewValue: "6.7.0", Setter: "flux-system:podinfo:tag"}},
					job: {{OldValue: "busybox:1.35", NewValue: "busybox:1.36", Setter: "flux-system:busybox"}},
				},
			},
		},
		Values: map[string]string{"cluster": "prod", "ticket": "OPS-7", "empty": "", "odd.key": "odd", "html": "<b>\"x\" & 'y'</b>"},
	}
}
