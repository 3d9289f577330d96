package main

import appsv1 "k8s.io/api/apps/v1"

func (g *generator) daemonSet() state {
	object := &appsv1.DaemonSet{
		ObjectMeta: metadata(g.generation()),
		Spec: appsv1.DaemonSetSpec{
			Template:       template(),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
		},
	}
	if g.chance(5) {
		object.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	}
	nodes := pick[int32](g, 1, 2, 3, 4, 6, 12)
	object.Status = daemonSetStatus(nodes, nodes, nodes, nodes)
	object.Status.ObservedGeneration = object.Generation
	stages := []func(*appsv1.DaemonSet) bool{
		g.newDaemonSet, g.startingDaemonSet, g.startingDaemonSet, g.rollingDaemonSet, g.rollingDaemonSet,
		g.rollingDaemonSet, g.rollingDaemonSet, g.completeDaemonSet, g.completeDaemonSet, g.completeDaemonSet,
		g.completeDaemonSet, g.grownDaemonSet, g.grownDaemonSet, g.nodelessDaemonSet, g.unobservedDaemonSet,
	}
	isInstalled := pick(g, stages...)(object)
	object.Status.NumberUnavailable = object.Status.DesiredNumberScheduled - object.Status.NumberAvailable
	return state{untyped("apps/v1", "DaemonSet", object), isInstalled}
}

// daemonSetStatus has the nodes of a DaemonSet: desired ones, and those with a pod, an updated pod and a ready pod.
func daemonSetStatus(desired, current, updated, ready int32) appsv1.DaemonSetStatus {
	return appsv1.DaemonSetStatus{
		DesiredNumberScheduled: desired, CurrentNumberScheduled: current, UpdatedNumberScheduled: updated,
		NumberReady: ready, NumberAvailable: ready,
	}
}

// newDaemonSet has a status without observation.
func (g *generator) newDaemonSet(object *appsv1.DaemonSet) bool {
	object.Generation = 1
	object.Status = appsv1.DaemonSetStatus{}
	return false
}

// startingDaemonSet has pods of its first template only.
func (g *generator) startingDaemonSet(object *appsv1.DaemonSet) bool {
	nodes := object.Status.DesiredNumberScheduled
	current := g.upTo(nodes)
	object.Generation = 1
	object.Status = daemonSetStatus(nodes, current, current, g.upTo(current))
	object.Status.ObservedGeneration = 1
	g.delay(object)
	return false
}

// delay makes ready pods unavailable, as `minReadySeconds` does.
func (g *generator) delay(object *appsv1.DaemonSet) {
	if g.chance(4) {
		object.Status.NumberAvailable = g.upTo(object.Status.NumberReady)
	}
}

func (g *generator) rollingDaemonSet(object *appsv1.DaemonSet) bool {
	status := &object.Status
	nodes := status.DesiredNumberScheduled
	status.UpdatedNumberScheduled = g.upTo(nodes)
	// The pod that is replaced is absent or not ready.
	status.CurrentNumberScheduled = max(status.UpdatedNumberScheduled, g.between(nodes-1, nodes))
	status.NumberReady = g.between(nodes-1, status.CurrentNumberScheduled)
	status.NumberAvailable = status.NumberReady
	g.delay(object)
	return g.chance(4)
}

// completeDaemonSet has updated pods everywhere, some of which may have become unready.
func (g *generator) completeDaemonSet(object *appsv1.DaemonSet) bool {
	status := &object.Status
	status.NumberReady = pick(g, status.DesiredNumberScheduled, g.upTo(status.DesiredNumberScheduled))
	status.NumberAvailable = status.NumberReady
	g.delay(object)
	if g.chance(6) {
		status.NumberMisscheduled = 1
	}
	return !g.chance(3)
}

// grownDaemonSet has new nodes.
func (g *generator) grownDaemonSet(object *appsv1.DaemonSet) bool {
	status := &object.Status
	added := g.between(1, 3)
	status.DesiredNumberScheduled += added
	started := g.between(0, added)
	status.CurrentNumberScheduled += started
	status.UpdatedNumberScheduled += started
	return !g.chance(3)
}

// nodelessDaemonSet has a selector that no node fits.
func (g *generator) nodelessDaemonSet(object *appsv1.DaemonSet) bool {
	observed := object.Status.ObservedGeneration
	object.Status = appsv1.DaemonSetStatus{ObservedGeneration: observed}
	return g.chance(2)
}

// unobservedDaemonSet has a change that the controller has not seen.
func (g *generator) unobservedDaemonSet(object *appsv1.DaemonSet) bool {
	isInstalled := pick(g, g.completeDaemonSet, g.completeDaemonSet, g.rollingDaemonSet)(object)
	object.Generation++
	return isInstalled
}
