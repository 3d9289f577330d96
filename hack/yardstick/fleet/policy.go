package main

import "fmt"

// policyNamespace is the namespace of all policies and of the automation.
const policyNamespace = "fleet"

// policy is an image policy with its decision, and what stood in the files before it.
type policy struct {
	name       string
	image      string   // the repository that latestRef names
	tag        string   // the tag that latestRef names
	digest     string   // the digest that latestRef names, or empty
	numeric    bool     // whether a YAML reader would take the plain tag for something else than text
	formerTags []string // tags written earlier, as people write them
}

const (
	currentRegistry = "registry.example.com/"
	formerRegistry  = "registry.old.example.net:5000/"
)

// policies are the twenty policies of the fleet.
var policies = []policy{
	{name: "api", image: "shop/api", tag: "v2.14.0", formerTags: []string{"v2.9.3", "v2.13.1", "v1.0.0-rc.4"}},
	{name: "web", image: "shop/web", tag: "1.10", numeric: true, formerTags: []string{"1.9", "1.8", "0.9.1"}},
	{name: "worker", image: "shop/worker", tag: "2026-01-31", numeric: true, formerTags: []string{"2025-12-01", "2024-01-01"}},
	{name: "nightly", image: "ci/nightly", tag: "20261103", numeric: true, formerTags: []string{"20261102", "20251231"}},
	{name: "commit", image: "ci/commit", tag: "12345e7", numeric: true, formerTags: []string{"3fa9c01", "77e1024", "deadbee"}},
	{name: "billing", image: "finance/billing", tag: "4.0.1", formerTags: []string{"4.0.0", "3.22.7", "3.9"}},
	{name: "ledger", image: "finance/ledger", tag: "v1.1.0", formerTags: []string{"1.0", "7", "v1.0.9"}},
	{name: "gateway", image: "edge/gateway", tag: "1.27.3-alpine3.20", formerTags: []string{"1.27.1-alpine3.20", "1.25-alpine"}},
	{name: "proxy", image: "edge/proxy", tag: "v1.31.0", digest: digestOf("proxy"), formerTags: []string{"v1.30.2", "v1.29.0"}},
	{name: "cache", image: "data/cache", tag: "7.4.2-bookworm", digest: digestOf("cache"), formerTags: []string{"7.4.1-bookworm", "7.2.0"}},
	{name: "database", image: "data/database", tag: "17.2", numeric: true, formerTags: []string{"17.1", "16.6", "16"}},
	{name: "search", image: "data/search", tag: "8.17.0", digest: digestOf("search"), formerTags: []string{"8.16.1", "8.9.0"}},
	{name: "queue", image: "data/queue", tag: "4.0.5-management", formerTags: []string{"4.0.4-management", "3.13-management"}},
	{name: "mailer", image: "team-mail/mailer", tag: "main-9f1c2ab-1763600000", formerTags: []string{"main-0a1b2c3-1763000000", "main-77aa001-1761000000"}},
	{name: "reports", image: "team-data/reports", tag: "main-e41d7bc-1763611111", formerTags: []string{"main-5c5c5c5-1762222222", "latest"}},
	{name: "auth", image: "platform/auth", tag: "26.0.7", formerTags: []string{"26.0.5", "25.0.6", "24.0"}},
	{name: "metrics", image: "platform/metrics", tag: "v3.0.1", formerTags: []string{"v3.0.0", "v2.55.1"}},
	{name: "logs", image: "platform/logs", tag: "3.3.1_build.12", formerTags: []string{"3.3.0", "3.2.1", "true"}},
	{name: "frontend", image: "shop/frontend", tag: "release_2026.11.2", formerTags: []string{"release_2026.11.1", "release_2026.10.9"}},
	{name: "jobs", image: "batch/jobs", tag: "0.58.0", formerTags: []string{"0.57.2", "0.51.0", "null"}},
}

// movePolicies lets the policy of that name, or every one if the name is "all", decide for one tag further.
func movePolicies(name string) error {
	found := name == "" || name == "all"
	for i := range policies {
		each := &policies[i]
		if name != "all" && name != each.name {
			continue
		}
		found = true
		each.tag += ".1"
		if each.digest != "" {
			each.digest = digestOf(each.name + " moved")
		}
	}
	if !found {
		return fmt.Errorf("there is no policy %q", name)
	}
	return nil
}

// digestOf returns the digest that the policy of that name has decided for.
func digestOf(name string) string {
	var stream uint64
	for _, letter := range []byte(name) {
		stream = stream*31 + uint64(letter)
	}
	return "sha256:" + newRandom(stream).hex(64)
}

// latest returns the value that the policy wants in a field.
func (p policy) latest(wanted field) string {
	switch wanted {
	case nameField:
		return currentRegistry + p.image
	case tagField:
		return p.tag
	case digestField:
		return p.digest
	default:
		reference := currentRegistry + p.image + ":" + p.tag
		if p.digest != "" {
			reference += "@" + p.digest
		}
		return reference
	}
}

// former returns a value that once stood in a field; it always differs from the latest.
func (p policy) former(wanted field, choice *random) string {
	switch wanted {
	case nameField:
		return formerRegistry + p.image
	case tagField:
		return pick(choice, p.formerTags)
	case digestField:
		return "sha256:" + choice.hex(64)
	default:
		registry := currentRegistry
		if choice.chance(20) {
			registry = formerRegistry
		}
		reference := registry + p.image + ":" + pick(choice, p.formerTags)
		if p.digest != "" && choice.chance(50) {
			reference += "@sha256:" + choice.hex(64)
		}
		return reference
	}
}
