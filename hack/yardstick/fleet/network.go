package main

import "fmt"

func (b *builder) service() mapping {
	return mapping{
		text("apiVersion", "v1"), text("kind", "Service"), b.metadata(b.app),
		under("spec",
			b.short("selector", text("app", b.app)),
			list("ports", mapping{text("name", "http"), text("port", "80"), text("targetPort", fmt.Sprint(b.choice.between(1024, 9999)))})),
	}
}

func (b *builder) ingress() mapping {
	var rules sequence
	for range b.choice.between(1, 5) {
		rules = append(rules, mapping{
			text("host", b.word()+".example.com"),
			under("http", list("paths", mapping{
				text("path", "/"+pick(b.choice, animals)), text("pathType", "Prefix"),
				under("backend", under("service", text("name", b.app), b.short("port", text("name", "http")))),
			})),
		})
	}
	return mapping{text("apiVersion", "networking.k8s.io/v1"), text("kind", "Ingress"), b.metadata(b.app), under("spec", entry{"rules", rules})}
}

func (b *builder) networkPolicy() mapping {
	return mapping{
		text("apiVersion", "networking.k8s.io/v1"), text("kind", "NetworkPolicy"), b.metadata(b.app),
		under("spec",
			under("podSelector", b.short("matchLabels", text("app", b.app))),
			b.shortList("policyTypes", "Ingress", "Egress"),
			list("ingress", mapping{list("from", mapping{under("podSelector", b.short("matchLabels", text("team", b.team)))})})),
	}
}

func (b *builder) role() mapping {
	var rules sequence
	for range b.choice.between(1, 6) {
		rules = append(rules, mapping{
			{"apiGroups", flowSequence{`""`, "apps"}},
			b.shortList("resources", "pods", pick(b.choice, []string{"services", "configmaps", "secrets"})),
			{"verbs", flowSequence{"get", "list", "watch"}},
		})
	}
	return mapping{text("apiVersion", "rbac.authorization.k8s.io/v1"), text("kind", "Role"), b.metadata(b.app), {"rules", rules}}
}

func (b *builder) autoscaler() mapping {
	return mapping{
		text("apiVersion", "autoscaling/v2"), text("kind", "HorizontalPodAutoscaler"), b.metadata(b.app),
		under("spec",
			under("scaleTargetRef", text("apiVersion", "apps/v1"), text("kind", "Deployment"), text("name", b.app)),
			text("minReplicas", "2"), text("maxReplicas", fmt.Sprint(b.choice.between(3, 40))),
			list("metrics", mapping{
				text("type", "Resource"),
				under("resource", text("name", "cpu"), b.short("target", text("type", "Utilization"), text("averageUtilization", "80"))),
			})),
	}
}
