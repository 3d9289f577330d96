// Public clients for forges, whose requests ours are compared with. A module of its own, because no other oracle needs them.
module tagboat/hack/oracle/forges

go 1.26.0

require (
	github.com/gfleury/go-bitbucket-v1 v0.0.0-20240917142304-df385efaac68
	github.com/ktrysmt/go-bitbucket v0.10.0
	gitlab.com/gitlab-org/api/client-go v1.46.0
)

require (
	github.com/google/go-querystring v1.2.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/mitchellh/mapstructure v1.5.0 // indirect
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)
