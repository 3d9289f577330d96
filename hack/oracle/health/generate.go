package main

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// image is the wanted image, which the spec of every object has.
const image = "podinfo:2.0.0"

// generator makes states of objects.
type generator struct{ *rand.Rand }

// state is an object as a controller leaves it.
type state struct {
	object map[string]any
	// installed says that the rollout of the same image was complete at the last observation.
	installed bool
}

// kinds has the share of each kind, in states of 100.
func (g *generator) kinds() []share {
	return []share{
		{32, g.deployment}, {18, g.statefulSet}, {12, g.daemonSet}, {10, g.job}, {3, g.cronJob}, {9, g.rollout},
		{5, g.pod}, {3, g.replicaSet}, {3, g.database}, {2, g.knativeService}, {1, g.prometheus}, {2, g.postgres},
	}
}

// share is a kind of state, with how often it is made.
type share struct {
	weight int
	state  func() state
}

func (g *generator) state() state {
	made := g.among(g.kinds())
	switch g.IntN(40) {
	case 0, 1, 2:
		g.change(made.object)
	case 3:
		metadata := made.object["metadata"].(map[string]any)
		metadata["deletionTimestamp"] = "2026-11-02T10:20:00Z"
	}
	return made
}

func (g *generator) among(shares []share) state {
	sum := 0
	for _, share := range shares {
		sum += share.weight
	}
	at := g.IntN(sum)
	for _, share := range shares {
		if at < share.weight {
			return share.state()
		}
		at -= share.weight
	}
	panic("the weights do not add up")
}

// change makes a state that no controller leaves, for example by a restored backup or another client.
func (g *generator) change(object map[string]any) {
	status, ok := object["status"].(map[string]any)
	if !ok {
		return
	}
	switch g.IntN(4) {
	case 0:
		delete(object, "status")
	case 1, 2:
		delete(status, "conditions")
	case 3:
		if observed, ok := status["observedGeneration"].(int64); ok {
			status["observedGeneration"] = observed + 1
		}
	}
}

// chance returns true in one of so many cases.
func (g *generator) chance(of int) bool {
	return g.IntN(of) == 0
}

// upTo returns a number from 0 to most, and often the largest.
func (g *generator) upTo(most int32) int32 {
	if most <= 0 {
		return 0
	}
	if g.chance(3) {
		return most
	}
	return g.between(0, most)
}

// between returns a number from least to most.
func (g *generator) between(least, most int32) int32 {
	if most <= least {
		return least
	}
	return least + g.Int32N(most-least+1)
}

func pick[T any](g *generator, values ...T) T {
	return values[g.IntN(len(values))]
}

// replicas returns a usual number of pods.
func (g *generator) replicas() int32 {
	return pick[int32](g, 1, 1, 2, 3, 3, 4, 5, 10)
}

// generation returns the generation of a spec that was changed some times.
func (g *generator) generation() int64 {
	return 2 + g.Int64N(6)
}

func metadata(generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "podinfo", Namespace: "apps", Generation: generation}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "podinfo", Image: image}},
	}}
}

// untyped returns an object as the API server writes it, without what is empty.
func untyped(apiVersion, kind string, object any) map[string]any {
	made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	check(err)
	made["apiVersion"], made["kind"] = apiVersion, kind
	prune(made)
	return made
}

// prune removes nulls and empty objects.
func prune(object map[string]any) {
	for key, value := range object {
		switch value := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			prune(value)
			if len(value) == 0 {
				delete(object, key)
			}
		case []any:
			for _, element := range value {
				if element, ok := element.(map[string]any); ok {
					prune(element)
				}
			}
		}
	}
}

// condition returns a condition of an object without a Go type.
func condition(kind, status, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason}
}
