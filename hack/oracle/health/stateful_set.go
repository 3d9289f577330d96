package main

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

func (g *generator) statefulSet() state {
	replicas := pick[int32](g, 1, 2, 3, 3, 5)
	object := &appsv1.StatefulSet{
		ObjectMeta: metadata(g.generation()),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Template: template(), ServiceName: "podinfo",
			// The API server adds the partition.
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)},
			},
		},
		Status: appsv1.StatefulSetStatus{
			Replicas: replicas, CurrentReplicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas,
			CurrentRevision: "podinfo-1", UpdateRevision: "podinfo-1",
		},
	}
	object.Status.ObservedGeneration = object.Generation
	stages := []func(*appsv1.StatefulSet) bool{
		g.newStatefulSet, g.startingStatefulSet, g.startingStatefulSet, g.rollingStatefulSet, g.rollingStatefulSet,
		g.rollingStatefulSet, g.completeStatefulSet, g.completeStatefulSet, g.completeStatefulSet,
		g.scaledStatefulSet, g.scaledStatefulSet, g.revertedStatefulSet, g.partitionedStatefulSet,
		g.partitionedStatefulSet, g.partitionedStatefulSet, g.onDeleteStatefulSet, g.onDeleteStatefulSet,
		g.onDeleteStatefulSet, g.emptyStatefulSet, g.unobservedStatefulSet,
	}
	isInstalled := pick(g, stages...)(object)
	object.Status.AvailableReplicas = object.Status.ReadyReplicas
	return state{untyped("apps/v1", "StatefulSet", object), isInstalled}
}

// newStatefulSet has no status yet.
func (g *generator) newStatefulSet(object *appsv1.StatefulSet) bool {
	object.Generation = 1
	object.Status = appsv1.StatefulSetStatus{}
	return false
}

// startingStatefulSet makes one pod after the other; its revisions are equal.
func (g *generator) startingStatefulSet(object *appsv1.StatefulSet) bool {
	object.Generation = 1
	pods := g.between(0, *object.Spec.Replicas)
	status := &object.Status
	status.ObservedGeneration = 1
	status.Replicas, status.CurrentReplicas, status.UpdatedReplicas = pods, pods, pods
	status.ReadyReplicas = g.between(max(0, pods-1), pods)
	return false
}

// rollStatefulSet sets the pods of an update that is not complete: `updated` pods of the new revision.
func (g *generator) rollStatefulSet(object *appsv1.StatefulSet, updated int32) {
	status := &object.Status
	status.UpdateRevision = "podinfo-2"
	status.UpdatedReplicas, status.CurrentReplicas = updated, *object.Spec.Replicas-updated
	// The pod that is replaced is terminating, absent or not ready.
	switch g.IntN(3) {
	case 0:
		status.ReadyReplicas--
	case 1:
		status.ReadyReplicas--
		status.Replicas--
		status.CurrentReplicas = max(0, status.CurrentReplicas-1)
	}
}

func (g *generator) rollingStatefulSet(object *appsv1.StatefulSet) bool {
	g.rollStatefulSet(object, g.between(0, *object.Spec.Replicas))
	return g.chance(6)
}

// completeStatefulSet has one revision; pods may have become unready, or are terminating.
func (g *generator) completeStatefulSet(object *appsv1.StatefulSet) bool {
	status := &object.Status
	switch g.IntN(4) {
	case 0:
		status.ReadyReplicas = g.upTo(*object.Spec.Replicas)
	case 1:
		// A terminating pod is a replica of no revision.
		status.CurrentReplicas--
		status.UpdatedReplicas--
		status.ReadyReplicas = g.between(max(0, status.ReadyReplicas-1), status.ReadyReplicas)
	case 2:
		status.Replicas--
		status.CurrentReplicas--
		status.UpdatedReplicas--
		status.ReadyReplicas--
	}
	return !g.chance(3)
}

// scaledStatefulSet has another number of pods than after its last rollout.
func (g *generator) scaledStatefulSet(object *appsv1.StatefulSet) bool {
	status := &object.Status
	before := *object.Spec.Replicas
	after := pick(g, before+1, before*2, max(1, before-1), max(1, before/2))
	*object.Spec.Replicas = after
	pods := g.between(min(before, after), max(before, after))
	status.Replicas, status.CurrentReplicas, status.UpdatedReplicas = pods, pods, pods
	status.ReadyReplicas = g.between(max(0, pods-1), pods)
	if pods > after && g.chance(2) {
		// One of the surplus pods is terminating: it is a replica of no revision.
		status.CurrentReplicas--
		status.UpdatedReplicas--
	}
	return g.chance(2)
}

// revertedStatefulSet got its former template back in an update: one revision, and pods of another.
func (g *generator) revertedStatefulSet(object *appsv1.StatefulSet) bool {
	status := &object.Status
	status.CurrentReplicas = g.between(0, *object.Spec.Replicas)
	status.UpdatedReplicas = status.CurrentReplicas
	status.ReadyReplicas = g.between(max(0, *object.Spec.Replicas-1), *object.Spec.Replicas)
	return false
}

// partitionedStatefulSet updates the pods from an ordinal on.
func (g *generator) partitionedStatefulSet(object *appsv1.StatefulSet) bool {
	replicas := *object.Spec.Replicas
	partition := g.between(1, replicas+1)
	object.Spec.UpdateStrategy.RollingUpdate.Partition = &partition
	if g.chance(4) {
		return g.completeStatefulSet(object)
	}
	switch g.IntN(3) {
	case 0:
		g.rollStatefulSet(object, g.between(0, max(0, replicas-partition)))
	case 1:
		// The partition is reached: the other pods wait for the user.
		object.Status.UpdateRevision = "podinfo-2"
		object.Status.UpdatedReplicas = max(0, replicas-partition)
		object.Status.CurrentReplicas = replicas - object.Status.UpdatedReplicas
	case 2:
		// All pods below the partition were deleted by the user.
		object.Status.UpdateRevision = "podinfo-2"
		object.Status.CurrentReplicas = 0
		object.Status.ReadyReplicas = g.between(replicas-1, replicas)
	}
	return g.chance(4)
}

// onDeleteStatefulSet updates the pods that a user deletes.
func (g *generator) onDeleteStatefulSet(object *appsv1.StatefulSet) bool {
	object.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	if g.chance(4) {
		return pick(g, g.completeStatefulSet, g.scaledStatefulSet, g.startingStatefulSet)(object)
	}
	g.rollStatefulSet(object, g.upTo(*object.Spec.Replicas))
	return g.chance(3)
}

// emptyStatefulSet is scaled to zero.
func (g *generator) emptyStatefulSet(object *appsv1.StatefulSet) bool {
	isInstalled := pick(g, g.completeStatefulSet, g.completeStatefulSet, g.rollingStatefulSet, g.newStatefulSet)(object)
	*object.Spec.Replicas = 0
	if !g.chance(3) {
		status := &object.Status
		status.Replicas, status.CurrentReplicas, status.UpdatedReplicas, status.ReadyReplicas = 0, 0, 0, 0
	}
	return isInstalled
}

// unobservedStatefulSet has a change that the controller has not seen.
func (g *generator) unobservedStatefulSet(object *appsv1.StatefulSet) bool {
	isInstalled := pick(g, g.completeStatefulSet, g.rollingStatefulSet, g.onDeleteStatefulSet)(object)
	object.Generation++
	return isInstalled
}
