// Package name stands for the package of that name in go-containerregistry: references of images.
package name

import "strings"

// dockerHub is the registry of names that have none.
const dockerHub = "index.docker.io"

// Registry is a registry.
type Registry struct {
	insecure bool
	registry string
}

// RegistryStr returns the name.
func (r Registry) RegistryStr() string { return r.registry }

// Name returns the name.
func (r Registry) Name() string { return r.registry }

// String returns the name.
func (r Registry) String() string { return r.registry }

// Repository is a repository of images.
type Repository struct {
	Registry
	repository string
}

// RepositoryStr returns the name without the registry.
func (r Repository) RepositoryStr() string {
	if r.registry == dockerHub && !strings.Contains(r.repository, "/") {
		return "library/" + r.repository
	}
	return r.repository
}

// Name returns the whole name.
func (r Repository) Name() string { return r.registry + "/" + r.RepositoryStr() }

// String returns the whole name.
func (r Repository) String() string { return r.Name() }

// Scope returns the access scope.
func (r Repository) Scope(action string) string {
	return "repository:" + r.RepositoryStr() + ":" + action
}

// Reference is an image of a repository.
type Reference interface {
	String() string
	Context() Repository
	Identifier() string
	Name() string
	Scope(action string) string
}

// Tag is an image by its tag.
type Tag struct {
	Repository
	tag      string
	original string
}

// Context returns the repository.
func (t Tag) Context() Repository { return t.Repository }

// Identifier returns the tag.
func (t Tag) Identifier() string { return t.tag }

// TagStr returns the tag.
func (t Tag) TagStr() string { return t.tag }

// Name returns the whole name.
func (t Tag) Name() string { return t.Repository.Name() + ":" + t.tag }

// String returns the text that it was read from.
func (t Tag) String() string { return t.original }

// Scope returns the access scope.
func (t Tag) Scope(action string) string { return t.Repository.Scope(action) }

// Digest is an image by its digest.
type Digest struct {
	Repository
	digest   string
	original string
}

// Context returns the repository.
func (d Digest) Context() Repository { return d.Repository }

// Identifier returns the digest.
func (d Digest) Identifier() string { return d.digest }

// DigestStr returns the digest.
func (d Digest) DigestStr() string { return d.digest }

// Name returns the whole name.
func (d Digest) Name() string { return d.Repository.Name() + "@" + d.digest }

// String returns the text that it was read from.
func (d Digest) String() string { return d.original }

// Scope returns the access scope.
func (d Digest) Scope(action string) string { return d.Repository.Scope(action) }

// New makes a reference of a repository's name, a tag and perhaps a digest.
func New(repository, tag, digest string) Reference {
	registry, rest, found := strings.Cut(repository, "/")
	if !found || !strings.ContainsAny(registry, ".:") {
		registry, rest = dockerHub, repository
	}
	if registry == "docker.io" {
		registry = dockerHub
	}
	context := Repository{Registry{registry: registry}, rest}
	if digest != "" {
		return Digest{context, digest, repository + ":" + tag + "@" + digest}
	}
	return Tag{context, tag, repository + ":" + tag}
}
