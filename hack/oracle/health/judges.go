package main

import (
	"fmt"
	"io/fs"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/v3/resource_customizations"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func kubectl(object *unstructured.Unstructured) string {
	viewer, err := polymorphichelpers.StatusViewerFor(object.GroupVersionKind().GroupKind())
	if err != nil {
		return ""
	}
	_, done, err := viewer.Status(object.DeepCopy(), 0)
	switch {
	case err != nil && done:
		// A strategy that kubectl does not follow.
		return "refused"
	case err != nil:
		return "failed"
	case done:
		return "done"
	}
	return "waiting"
}

func kstatus(object *unstructured.Unstructured) string {
	result, err := status.Compute(object.DeepCopy())
	if err != nil {
		return "Error"
	}
	return string(result.Status)
}

func argo(object *unstructured.Unstructured) string {
	result, err := health.GetResourceHealth(object.DeepCopy(), scripts{})
	if result == nil {
		check(err)
		return ""
	}
	return string(result.Status)
}

// scripts runs the health scripts that Argo CD has for kinds without a function.
type scripts struct{}

func (scripts) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	kind := object.GroupVersionKind()
	script, err := fs.ReadFile(resource_customizations.Embedded, kind.Group+"/"+kind.Kind+"/health.lua")
	if err != nil {
		return nil, nil
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, library := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		state.Push(state.NewFunction(library))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	value, err := luajson.Decode(state, text)
	if err != nil {
		return nil, err
	}
	state.SetGlobal("obj", value)
	if err := state.DoString(string(script)); err != nil {
		return nil, err
	}
	returned, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the script of %s returns no table", kind)
	}
	return &health.HealthStatus{Status: health.HealthStatusCode(lua.LVAsString(returned.RawGetString("status")))}, nil
}
