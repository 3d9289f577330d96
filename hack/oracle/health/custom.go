package main

// custom returns an object of a kind without a Go type.
func (g *generator) custom(apiVersion, kind string, spec, status map[string]any) state {
	object := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": "podinfo", "namespace": "apps", "generation": g.generation()},
		"spec":     spec,
	}
	if !g.chance(10) {
		object["status"] = status
		if _, ok := status["observedGeneration"]; ok {
			observed := object["metadata"].(map[string]any)["generation"].(int64)
			if g.chance(6) {
				observed--
			}
			status["observedGeneration"] = observed
		}
	}
	return state{object, g.chance(3)}
}

// database makes an object whose controller follows the conventions of kstatus. Argo CD does not know the kind.
func (g *generator) database() state {
	conditions := []any{}
	ready := pick(g, "True", "False", "Unknown")
	reason := pick(g, "Succeeded", "Progressing", "DependencyNotReady", "InstallFailed")
	if !g.chance(8) {
		conditions = append(conditions, condition("Ready", ready, reason))
	}
	switch g.IntN(5) {
	case 0, 1:
		conditions = append(conditions, condition("Reconciling", pick(g, "True", "True", "False"), reason))
	case 2, 3:
		conditions = append(conditions, condition("Stalled", pick(g, "True", "True", "False"), reason))
	}
	if g.chance(12) {
		conditions = append(conditions, condition("Stalled", "True", reason), condition("Reconciling", "True", reason))
	}
	status := map[string]any{"conditions": conditions}
	if !g.chance(3) {
		status["observedGeneration"] = nil
	}
	return g.custom("db.example.com/v1", "Database", map[string]any{"image": image}, status)
}

// knativeService makes a Service of Knative.
func (g *generator) knativeService() state {
	status := map[string]any{"observedGeneration": nil, "conditions": []any{}}
	ready := "True"
	for _, kind := range []string{"ConfigurationsReady", "RoutesReady"} {
		value := pick(g, "True", "True", "True", "True", "Unknown", "False")
		if value != "True" && ready != "False" {
			ready = value
		}
		status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": kind, "status": value})
	}
	status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": "Ready", "status": ready})
	return g.custom("serving.knative.dev/v1", "Service", map[string]any{"template": containers()}, status)
}

// prometheus makes a Prometheus of the Prometheus operator, which has no condition of kstatus.
func (g *generator) prometheus() state {
	available := condition("Available", "True", "")
	if g.chance(2) {
		available = condition("Available", pick(g, "False", "Degraded"), pick(g, "SomePodsNotReady", "NoPodReady"))
	}
	status := map[string]any{
		"replicas": int64(2), "availableReplicas": int64(g.between(0, 2)), "updatedReplicas": int64(g.between(0, 2)),
		"conditions": []any{available, condition("Reconciled", pick(g, "True", "False"), "")},
	}
	return g.custom("monitoring.coreos.com/v1", "Prometheus", map[string]any{"image": image}, status)
}

// postgres makes a Cluster of CloudNativePG.
func (g *generator) postgres() state {
	instances := g.between(1, 3)
	phase, ready := "Cluster in healthy state", condition("Ready", "True", "ClusterIsReady")
	if !g.chance(3) {
		phase = pick(g, "Setting up primary", "Creating a new replica", "Waiting for the instances to become active",
			"Upgrading cluster", "Primary instance is being restarted in-place", "Failing over",
			"Waiting for user action", "Unable to create required cluster objects")
		ready = condition("Ready", "False", "ClusterIsNotReady")
	}
	status := map[string]any{
		"phase": phase, "instances": int64(instances), "readyInstances": int64(g.between(0, instances)),
		"conditions": []any{ready, condition("ContinuousArchiving", "True", "ContinuousArchivingSuccess")},
	}
	return g.custom("postgresql.cnpg.io/v1", "Cluster", map[string]any{"imageName": image}, status)
}
