package main

import "strconv"

// rollout makes a Rollout of Argo Rollouts. Its type is not among those of Kubernetes.
func (g *generator) rollout() state {
	replicas := int64(g.replicas())
	generation := g.generation()
	spec := map[string]any{
		"replicas": replicas,
		"strategy": pick(g,
			map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"setWeight": int64(20)}}}},
			map[string]any{"blueGreen": map[string]any{"activeService": "podinfo"}},
		),
		"template": containers(),
	}
	status := map[string]any{
		"observedGeneration": strconv.FormatInt(generation, 10), "replicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas, "currentPodHash": "66f8", "stableRS": "66f8",
	}
	object := map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{"name": "podinfo", "namespace": "apps", "generation": generation},
		"spec":     spec, "status": status,
	}
	if strategy := spec["strategy"].(map[string]any); strategy["blueGreen"] != nil {
		status["blueGreen"] = map[string]any{"activeSelector": "66f8"}
	}
	stages := []func(spec, status map[string]any) bool{
		g.healthyRollout, g.healthyRollout, g.progressingRollout, g.progressingRollout, g.restartingRollout,
		g.pausedRollout, g.degradedRollout, g.abortedRollout,
	}
	isInstalled := pick(g, stages...)(spec, status)
	switch g.IntN(12) {
	case 0:
		// A version before 0.10 writes a hash.
		status["observedGeneration"] = pick(g, "5b9c7d", "7788995566")
	case 1, 2:
		status["observedGeneration"] = strconv.FormatInt(generation-1, 10)
	case 3, 7:
		// A version before 1.0 writes no phase.
		delete(status, "phase")
		delete(status, "message")
		if g.chance(4) {
			delete(status, "conditions")
		}
	case 4, 5:
		g.refer(object)
	case 6:
		if g.chance(3) {
			delete(object, "status")
			isInstalled = false
		}
	}
	return state{object, isInstalled}
}

func containers() map[string]any {
	return map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "podinfo", "image": image}},
	}}
}

// refer lets a Rollout use the template of a Deployment, of which the controller notes the generation.
func (g *generator) refer(object map[string]any) {
	spec, status := object["spec"].(map[string]any), object["status"].(map[string]any)
	delete(spec, "template")
	spec["workloadRef"] = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"}
	generation := g.generation()
	object["metadata"].(map[string]any)["annotations"] = map[string]any{
		"rollout.argoproj.io/workload-generation": strconv.FormatInt(generation, 10),
	}
	status["workloadObservedGeneration"] = strconv.FormatInt(generation-int64(pick(g, 0, 0, 1)), 10)
}

func (g *generator) healthyRollout(_, status map[string]any) bool {
	status["phase"] = "Healthy"
	status["conditions"] = []any{condition("Completed", "True", "RolloutCompleted")}
	return !g.chance(3)
}

func (g *generator) progressingRollout(spec, status map[string]any) bool {
	replicas := int32(spec["replicas"].(int64))
	status["phase"] = "Progressing"
	status["message"] = pick(g, "more replicas need to be updated", "old replicas are pending termination",
		"updated replicas are still becoming available", "active service cutover pending")
	status["currentPodHash"] = "77aa"
	status["updatedReplicas"] = int64(g.between(0, replicas))
	status["availableReplicas"] = int64(g.between(0, replicas))
	status["readyReplicas"] = status["availableReplicas"]
	status["conditions"] = []any{condition("Progressing", "True", "ReplicaSetUpdated")}
	return g.chance(8)
}

// restartingRollout has unready pods after its rollout.
func (g *generator) restartingRollout(spec, status map[string]any) bool {
	status["phase"] = "Progressing"
	status["message"] = "updated replicas are still becoming available"
	status["availableReplicas"] = int64(g.between(0, int32(spec["replicas"].(int64))-1))
	status["readyReplicas"] = status["availableReplicas"]
	status["conditions"] = []any{condition("Progressing", "True", "NewReplicaSetAvailable")}
	return !g.chance(3)
}

func (g *generator) pausedRollout(_, status map[string]any) bool {
	status["phase"], status["message"] = "Paused", pick(g, "CanaryPauseStep", "BlueGreenPause", "manually paused")
	status["currentPodHash"], status["updatedReplicas"] = "77aa", int64(1)
	status["pauseConditions"] = []any{map[string]any{"reason": status["message"]}}
	status["conditions"] = []any{condition("Paused", "True", "RolloutPaused")}
	return g.chance(8)
}

func (g *generator) degradedRollout(_, status map[string]any) bool {
	reason := pick(g, "ProgressDeadlineExceeded", "InvalidSpec")
	status["phase"], status["message"] = "Degraded", reason+": the Rollout is not valid or late"
	status["currentPodHash"] = "77aa"
	status["conditions"] = []any{condition(pick(g, "Progressing", "InvalidSpec"), "False", reason)}
	return g.chance(8)
}

func (g *generator) abortedRollout(_, status map[string]any) bool {
	status["abort"] = true
	status["phase"], status["message"] = "Degraded", "RolloutAborted: Rollout aborted update to revision 3"
	if g.chance(2) {
		// The user has just aborted.
		status["phase"] = "Progressing"
	}
	status["currentPodHash"], status["updatedReplicas"] = "77aa", int64(0)
	status["conditions"] = []any{condition("Progressing", "False", "RolloutAborted")}
	return g.chance(8)
}
