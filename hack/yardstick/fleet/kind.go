package main

// kind is a kind of file.
type kind struct {
	names     []string // file names it may have
	documents func(*builder) []node
	weight    int  // how frequent it is
	markable  bool // whether it holds images
}

var kinds = []kind{
	{[]string{"deployment.yaml", "deployment.yml", "workload.yaml"}, one(func(b *builder) node { return b.workload("Deployment") }), 22, true},
	{[]string{"statefulset.yaml"}, one(func(b *builder) node { return b.workload("StatefulSet") }), 4, true},
	{[]string{"daemonset.yaml"}, one(func(b *builder) node { return b.workload("DaemonSet") }), 3, true},
	{[]string{"cronjob.yaml"}, one(func(b *builder) node { return b.cronJob() }), 4, true},
	{[]string{"release.yaml", "helmrelease.yaml"}, one(func(b *builder) node { return b.helmRelease() }), 15, true},
	{[]string{"values.yaml", "values-production.yaml"}, one(func(b *builder) node { return b.helmValues() }), 8, true},
	{[]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, one(func(b *builder) node { return b.kustomization() }), 15, true},
	{[]string{"image-patch.yaml"}, one(func(b *builder) node { return b.jsonPatch() }), 2, true},
	{[]string{"settings.yaml"}, one(func(b *builder) node { return b.configMap() }), 10, true},
	{[]string{"list.yaml"}, one(func(b *builder) node { return b.objectList() }), 2, true},
	{[]string{"all.yaml", "install.yaml"}, (*builder).bundle, 6, true},
	{[]string{"service.yaml"}, one(func(b *builder) node { return b.service() }), 10, false},
	{[]string{"ingress.yaml"}, one(func(b *builder) node { return b.ingress() }), 6, false},
	{[]string{"network-policy.yaml"}, one(func(b *builder) node { return b.networkPolicy() }), 4, false},
	{[]string{"role.yaml"}, one(func(b *builder) node { return b.role() }), 5, false},
	{[]string{"autoscaler.yaml"}, one(func(b *builder) node { return b.autoscaler() }), 4, false},
	{[]string{"alerts.yaml"}, one(func(b *builder) node { return b.alertRules() }), 4, false},
}

// dashboardKind is drawn apart from the others, since such files are few and large.
var dashboardKind = kind{names: []string{"dashboard.yaml"}, documents: one(func(b *builder) node { return b.dashboard() })}

// one makes files of a single document.
func one(document func(*builder) node) func(*builder) []node {
	return func(b *builder) []node { return []node{document(b)} }
}

// bundle is a file of several documents.
func (b *builder) bundle() []node {
	documents := []node{b.service(), b.workload("Deployment"), b.autoscaler()}
	if b.choice.chance(40) {
		documents = append(documents, b.configMap())
	}
	return documents
}

// objectList is a List of objects.
func (b *builder) objectList() mapping {
	return mapping{
		text("apiVersion", "v1"), text("kind", "List"),
		list("items", b.service(), b.workload("Deployment"), b.role()),
	}
}

// drawKind chooses the kind of a file.
func drawKind(choice *random, mustBeMarkable bool) kind {
	if !mustBeMarkable && choice.below(1000) < 4 {
		return dashboardKind
	}
	total := 0
	for _, each := range kinds {
		total += each.weightIf(mustBeMarkable)
	}
	drawn := choice.below(total)
	for _, each := range kinds {
		if drawn -= each.weightIf(mustBeMarkable); drawn < 0 {
			return each
		}
	}
	panic("weights do not add up")
}

func (k kind) weightIf(mustBeMarkable bool) int {
	if mustBeMarkable && !k.markable {
		return 0
	}
	return k.weight
}
