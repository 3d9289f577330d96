package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// pod makes a pod without a controller.
func (g *generator) pod() state {
	object := &corev1.Pod{ObjectMeta: metadata(0), Spec: template().Spec}
	object.CreationTimestamp = started
	object.Spec.RestartPolicy = pick(g, corev1.RestartPolicyAlways, corev1.RestartPolicyAlways,
		corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	container := corev1.ContainerStatus{Name: "podinfo", Image: image, RestartCount: pick[int32](g, 0, 0, 1, 3)}
	ready := corev1.ConditionFalse
	switch g.IntN(8) {
	case 0:
		return state{untyped("v1", "Pod", object), false}
	case 1:
		object.Status.Phase = corev1.PodPending
		object.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		}}
		return state{untyped("v1", "Pod", object), false}
	case 2:
		object.Status.Phase = corev1.PodPending
		reason := pick(g, "ContainerCreating", "ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError",
			"InvalidImageName", "ErrImageNeverPull")
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
	case 3:
		object.Status.Phase = corev1.PodRunning
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		container.RestartCount = g.between(1, 6)
		container.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
	case 4, 5:
		object.Status.Phase = corev1.PodRunning
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
		if container.RestartCount > 0 {
			container.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		}
		if g.chance(2) {
			ready, container.Ready = corev1.ConditionTrue, true
		}
	default:
		code := pick[int32](g, 0, 0, 1)
		object.Status.Phase = corev1.PodSucceeded
		container.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed"}
		if code != 0 {
			object.Status.Phase, container.State.Terminated.Reason = corev1.PodFailed, "Error"
		}
	}
	object.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	object.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready},
	}
	return state{untyped("v1", "Pod", object), g.chance(3)}
}

// replicaSet makes a ReplicaSet without a Deployment.
func (g *generator) replicaSet() state {
	replicas := g.replicas()
	object := &appsv1.ReplicaSet{ObjectMeta: metadata(g.generation())}
	object.Spec.Replicas, object.Spec.Template = &replicas, template()
	pods := g.between(max(0, replicas-2), replicas+1)
	ready := g.upTo(pods)
	object.Status = appsv1.ReplicaSetStatus{
		Replicas: pods, FullyLabeledReplicas: pods, ReadyReplicas: ready, AvailableReplicas: g.upTo(ready),
		ObservedGeneration: object.Generation - int64(pick(g, 0, 0, 0, 0, 0, 1)),
	}
	if g.chance(2) {
		object.Status.AvailableReplicas = ready
	}
	if g.chance(8) {
		// Its pods still have the labels of the template before.
		object.Status.FullyLabeledReplicas = g.upTo(pods)
	}
	if pods < replicas && g.chance(3) {
		object.Status.Conditions = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
		}}
	}
	return state{untyped("apps/v1", "ReplicaSet", object), g.chance(3)}
}
