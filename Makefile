# make help lists the targets. Only hack/setup installs anything.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The target of fuzz/ that `make fuzz` runs.
FUZZ_TARGET ?= rewrite

# The number of templates that `make differential` generates, and their seed.
DIFFERENTIAL_COUNT ?= 100000
DIFFERENTIAL_SEED ?= 1

GO := GOTOOLCHAIN=local GOWORK=off go

.PHONY: demo
demo: ## Run the main job on an embedded sample
	@hack/setup build
	@cargo run --quiet --locked -- demo

.PHONY: test
test: ## Run every test, of Rust and of the programs in hack/; print the ten slowest
	@hack/setup
	hack/test
	cd hack/yardstick && $(GO) test ./...
	cd hack/oracle && $(GO) vet ./...

.PHONY: lint
lint: ## Check formatting and run clippy, warnings as errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

.PHONY: deny
deny: ## Check licences, duplicates, sources and advisories of all dependencies
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is missing; run: cargo install cargo-deny --locked" >&2; exit 1; }
	cargo deny check licenses bans sources
	@if timeout 120 cargo deny fetch db 2>/dev/null; then cargo deny check advisories; \
	else echo "the database of advisories cannot be reached: advisories were not checked"; fi

.PHONY: bench
bench: ## Measure Tagboat beside other programs on a fleet of 20,000 files (hack/bench update, git, message, policy, history, controller, rollout, nodes or forges: one part)
	@hack/setup
	hack/bench

.PHONY: fuzz
fuzz: FUZZ_SECONDS ?= 1200
fuzz: ## Fuzz one target for FUZZ_SECONDS (default 1200; FUZZ_TARGET=rewrite)
	@hack/setup fuzz
	hack/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGET)

.PHONY: fuzz-all
fuzz-all: FUZZ_SECONDS ?= 30
fuzz-all: ## Build every fuzz target, and fuzz each for FUZZ_SECONDS (default 30)
	@hack/setup fuzz
	hack/fuzz $(FUZZ_SECONDS)

.PHONY: oracle
oracle: ## Regenerate the tables of comments, versions, filters, numbers, templates and messages with Flux's libraries, of the health of workloads and of requests to forges with others
	@hack/setup
	cd hack/oracle && $(GO) run ./comments >"$(CURDIR)/testdata/comments/attachment.json.new"
	mv testdata/comments/attachment.json.new testdata/comments/attachment.json
	cd hack/oracle && $(GO) run ./semver >"$(CURDIR)/testdata/semver/table.json.new"
	mv testdata/semver/table.json.new testdata/semver/table.json
	cd hack/oracle && $(GO) run ./filter >"$(CURDIR)/testdata/filter/table.json.new"
	mv testdata/filter/table.json.new testdata/filter/table.json
	cd hack/oracle && $(GO) run ./number >"$(CURDIR)/testdata/number/table.json.new"
	mv testdata/number/table.json.new testdata/number/table.json
	cd hack/oracle && $(GO) run ./unicode >"$(CURDIR)/crates/go-template/src/unicode/tables.rs.new"
	mv crates/go-template/src/unicode/tables.rs.new crates/go-template/src/unicode/tables.rs
	cd hack/oracle && $(GO) run ./template "$(CURDIR)"/testdata/template/cases/*.txt >"$(CURDIR)/testdata/template/table.json.new"
	mv testdata/template/table.json.new testdata/template/table.json
	cd hack/oracle && $(GO) run ./message "$(CURDIR)"/testdata/message/data "$(CURDIR)"/testdata/message/cases/*.txt >"$(CURDIR)/testdata/message/table.json.new"
	mv testdata/message/table.json.new testdata/message/table.json
	python3 hack/oracle/code_commit/generate.py >"$(CURDIR)/testdata/clouds/code-commit.json.new" # needs botocore
	mv testdata/clouds/code-commit.json.new testdata/clouds/code-commit.json
	cd hack/oracle/health && $(GO) vet . && $(GO) run . >"$(CURDIR)/testdata/rollout/health.json.new"
	mv testdata/rollout/health.json.new testdata/rollout/health.json
	cd hack/oracle/forges && $(GO) vet . && $(GO) run . >"$(CURDIR)/testdata/forges/go-clients.json.new"
	mv testdata/forges/go-clients.json.new testdata/forges/go-clients.json
	mkdir -p target/graphql && cp hack/oracle/graphql/package*.json target/graphql
	npm ci --silent --ignore-scripts --prefix target/graphql
	cd hack/oracle/graphql && $(GO) vet . && $(GO) run . \
		"$(CURDIR)/target/graphql/node_modules/@octokit/graphql-schema/schema.graphql" \
		"$(CURDIR)"/src/forge/github/*.graphql >"$(CURDIR)/testdata/forges/graphql.json.new"
	mv testdata/forges/graphql.json.new testdata/forges/graphql.json

.PHONY: differential
differential: ## Render DIFFERENTIAL_COUNT random templates with Go and with ours (default 100000; DIFFERENTIAL_SEED=1)
	@hack/setup
	mkdir -p target
	cd hack/oracle && $(GO) build -o "$(CURDIR)/target/template-oracle" ./template
	cargo run --quiet --release --locked -p tagboat-go-template --example differential -- \
		target/template-oracle $(DIFFERENTIAL_COUNT) $(DIFFERENTIAL_SEED)

.PHONY: crds
crds: ## Write deploy/crds, deploy/rollout/crds, deploy/nodes/crds, the roles below deploy and the schemas in docs from the types
	cargo run --quiet --locked -- crds --write deploy/crds
	cargo run --quiet --locked -- crds --rollout --write deploy/rollout/crds
	cargo run --quiet --locked -- crds --nodes --write deploy/nodes/crds
	cargo run --quiet --locked -- rbac --write deploy
	cargo run --quiet --locked -- schema >docs/outcome.schema.json.new
	mv docs/outcome.schema.json.new docs/outcome.schema.json
	cargo run --quiet --locked -- schema history >docs/history.schema.json.new
	mv docs/history.schema.json.new docs/history.schema.json
	cargo run --quiet --locked -- schema explain-policy >docs/explain-policy.schema.json.new
	mv docs/explain-policy.schema.json.new docs/explain-policy.schema.json
	cargo run --quiet --locked -- schema explain-automation >docs/explain-automation.schema.json.new
	mv docs/explain-automation.schema.json.new docs/explain-automation.schema.json

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | while IFS=$$'\t' read -r name what; do printf '  make %-12s %s\n' "$$name" "$$what"; done
