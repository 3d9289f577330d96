package main

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// maxUnavailable is the number of pods that an update with the default strategy may take away.
func maxUnavailable(replicas int32) int32 {
	return replicas / 4
}

// maxSurge is the number of pods that an update with the default strategy may add.
func maxSurge(replicas int32) int32 {
	return (replicas + 3) / 4
}

// deploymentStatus has the pods of a Deployment: all, updated, ready and available.
func deploymentStatus(replicas, updated, ready, available int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{
		Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: available,
	}
}

func (g *generator) deployment() state {
	replicas := g.replicas()
	object := &appsv1.Deployment{
		ObjectMeta: metadata(g.generation()),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, ProgressDeadlineSeconds: ptr.To[int32](600), Template: template(),
		},
	}
	object.Status.ObservedGeneration = object.Generation
	stages := []func(*appsv1.Deployment) bool{
		g.newDeployment, g.startingDeployment, g.rollingDeployment, g.rollingDeployment, g.rollingDeployment,
		g.availableDeployment, g.availableDeployment, g.availableDeployment, g.scaledDeployment,
		g.scaledDeployment, g.lateDeployment, g.lateDeployment, g.refusedDeployment, g.refusedDeployment,
		g.pausedDeployment, g.pausedDeployment, g.emptyDeployment, g.emptyDeployment, g.unobservedDeployment,
		g.unobservedDeployment,
	}
	isInstalled := pick(g, stages...)(object)
	if g.chance(5) {
		g.removeDeadline(object)
	}
	setAvailable(object)
	return state{untyped("apps/v1", "Deployment", object), isInstalled}
}

// setProgressing sets the condition of the controller for the rollout.
func setProgressing(object *appsv1.Deployment, status corev1.ConditionStatus, reason string) {
	object.Status.Conditions = append(object.Status.Conditions, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: status, Reason: reason,
	})
}

// setAvailable sets the condition of the controller for the available pods, and their number.
func setAvailable(object *appsv1.Deployment) {
	if object.Status.ObservedGeneration == 0 {
		return
	}
	replicas, available := *object.Spec.Replicas, object.Status.AvailableReplicas
	object.Status.UnavailableReplicas = max(0, object.Status.Replicas-available)
	condition := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
	}
	if available < replicas-maxUnavailable(replicas) {
		condition.Status, condition.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
	}
	object.Status.Conditions = append(object.Status.Conditions, condition)
}

// removeDeadline removes the deadline, and with it the condition for the rollout.
func (g *generator) removeDeadline(object *appsv1.Deployment) {
	object.Spec.ProgressDeadlineSeconds = ptr.To[int32](math.MaxInt32)
	kept := []appsv1.DeploymentCondition{}
	for _, condition := range object.Status.Conditions {
		if condition.Type != appsv1.DeploymentProgressing {
			kept = append(kept, condition)
		}
	}
	object.Status.Conditions = kept
}

// newDeployment has no status yet.
func (g *generator) newDeployment(object *appsv1.Deployment) bool {
	object.Generation = 1
	object.Status = appsv1.DeploymentStatus{}
	return false
}

// startingDeployment has pods of its first template only.
func (g *generator) startingDeployment(object *appsv1.Deployment) bool {
	object.Generation, object.Status.ObservedGeneration = 1, 1
	pods := g.upTo(*object.Spec.Replicas)
	ready := g.upTo(pods)
	object.Status = deploymentStatus(pods, pods, ready, g.upTo(ready))
	object.Status.ObservedGeneration = 1
	setProgressing(object, corev1.ConditionTrue, pick(g, "NewReplicaSetCreated", "ReplicaSetUpdated"))
	return false
}

// roll sets the pods of an update that is not complete.
func (g *generator) roll(object *appsv1.Deployment) {
	replicas := *object.Spec.Replicas
	updated := g.between(0, replicas)
	old := g.between(max(0, replicas-updated-maxUnavailable(replicas)), replicas+maxSurge(replicas)-updated)
	if g.chance(6) {
		// The strategy Recreate: old pods end before new ones start.
		updated, old = pick(g, 0, updated), pick(g, 0, old)
	}
	pods := updated + old
	ready := max(g.between(old, pods), min(pods, replicas-maxUnavailable(replicas)))
	if g.chance(4) {
		ready = g.upTo(pods)
	}
	available := ready
	if g.chance(3) {
		// Pods become available `minReadySeconds` after they are ready.
		available = g.upTo(ready)
	}
	observed := object.Status.ObservedGeneration
	object.Status = deploymentStatus(pods, updated, ready, available)
	object.Status.ObservedGeneration = observed
}

func (g *generator) rollingDeployment(object *appsv1.Deployment) bool {
	g.roll(object)
	reason := pick(g, "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ReplicaSetUpdated")
	if g.chance(12) {
		// The condition is still that of the rollout before.
		reason = "NewReplicaSetAvailable"
	}
	status := corev1.ConditionTrue
	if g.chance(12) {
		status, reason = corev1.ConditionFalse, "ReplicaSetCreateError"
	} else if g.chance(16) {
		status, reason = corev1.ConditionUnknown, "DeploymentResumed"
	}
	setProgressing(object, status, reason)
	return false
}

// complete sets the pods of a complete rollout.
func (g *generator) complete(object *appsv1.Deployment, ready int32) {
	replicas, observed := *object.Spec.Replicas, object.Status.ObservedGeneration
	object.Status = deploymentStatus(replicas, replicas, ready, ready)
	object.Status.ObservedGeneration = observed
	setProgressing(object, corev1.ConditionTrue, "NewReplicaSetAvailable")
}

// availableDeployment has a complete rollout, after which pods may have become unready.
func (g *generator) availableDeployment(object *appsv1.Deployment) bool {
	replicas := *object.Spec.Replicas
	g.complete(object, pick(g, replicas, g.upTo(replicas)))
	if g.chance(6) {
		// An evicted pod has ended, and the next one does not exist yet.
		object.Status.Replicas--
		object.Status.UpdatedReplicas--
		object.Status.ReadyReplicas = min(object.Status.ReadyReplicas, object.Status.Replicas)
		object.Status.AvailableReplicas = object.Status.ReadyReplicas
	}
	return !g.chance(3)
}

// scaledDeployment has another number of pods than after its last rollout.
func (g *generator) scaledDeployment(object *appsv1.Deployment) bool {
	before := *object.Spec.Replicas
	g.complete(object, before)
	after := pick(g, before+1, before*3, max(1, before-1), max(1, before/3))
	*object.Spec.Replicas = after
	if after > before {
		object.Status.Replicas = g.between(before, after)
		object.Status.UpdatedReplicas = object.Status.Replicas
		object.Status.ReadyReplicas = g.between(before, object.Status.Replicas)
		object.Status.AvailableReplicas = object.Status.ReadyReplicas
	}
	return g.chance(2)
}

// lateDeployment has exceeded its deadline.
func (g *generator) lateDeployment(object *appsv1.Deployment) bool {
	g.roll(object)
	setProgressing(object, corev1.ConditionFalse, "ProgressDeadlineExceeded")
	return g.chance(4)
}

// refusedDeployment has pods that the API server refuses, for example because of a quota.
func (g *generator) refusedDeployment(object *appsv1.Deployment) bool {
	isInstalled := pick(g, g.startingDeployment, g.rollingDeployment, g.scaledDeployment, g.lateDeployment)(object)
	object.Status.Conditions = append(object.Status.Conditions, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
	})
	return isInstalled
}

// pausedDeployment was paused before, in or after a rollout.
func (g *generator) pausedDeployment(object *appsv1.Deployment) bool {
	isInstalled := pick(g, g.newDeployment, g.rollingDeployment, g.availableDeployment, g.refusedDeployment)(object)
	object.Spec.Paused = true
	for i := range object.Status.Conditions {
		condition := &object.Status.Conditions[i]
		if condition.Type == appsv1.DeploymentProgressing && !g.chance(4) {
			condition.Status, condition.Reason = corev1.ConditionUnknown, "DeploymentPaused"
		}
	}
	return isInstalled
}

// emptyDeployment is scaled to zero.
func (g *generator) emptyDeployment(object *appsv1.Deployment) bool {
	isInstalled := pick(g, g.newDeployment, g.availableDeployment, g.availableDeployment, g.rollingDeployment,
		g.refusedDeployment)(object)
	*object.Spec.Replicas = 0
	if object.Status.ObservedGeneration != 0 && !g.chance(3) {
		conditions, observed := object.Status.Conditions, object.Status.ObservedGeneration
		object.Status = appsv1.DeploymentStatus{ObservedGeneration: observed, Conditions: conditions}
	} else if g.chance(2) {
		object.Generation++
	}
	return isInstalled
}

// unobservedDeployment has a change that the controller has not seen.
func (g *generator) unobservedDeployment(object *appsv1.Deployment) bool {
	isInstalled := pick(g, g.availableDeployment, g.availableDeployment, g.rollingDeployment, g.lateDeployment,
		g.refusedDeployment, g.pausedDeployment)(object)
	object.Generation++
	return isInstalled && g.chance(2)
}
