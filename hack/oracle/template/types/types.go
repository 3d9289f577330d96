// Package types stands for k8s.io/apimachinery/pkg/types.
package types

// NamespacedName names an object.
type NamespacedName struct {
	Namespace string
	Name      string
}

// String returns namespace and name with a slash between them.
func (n NamespacedName) String() string {
	return n.Namespace + "/" + n.Name
}
