module tagboat/hack/oracle

go 1.26.0

require (
	github.com/Masterminds/semver/v3 v3.5.0
	github.com/fluxcd/pkg/version v0.16.0
	go.yaml.in/yaml/v3 v3.0.4
)
