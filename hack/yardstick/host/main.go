// Host serves the git repositories of a directory over HTTP on the loopback interface, by git's own CGI program.
//
// Usage: host DIR
//
// It prints its address, such as http://127.0.0.1:40123, and serves until it is ended. Everybody may push.
package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: host DIR")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

func serve(directory string) error {
	root, err := filepath.Abs(directory)
	if err != nil {
		return err
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, backend(git, root))
}

// backend answers each request by a process of git http-backend, with as little of our environment and of the
// machine's configuration as may be.
func backend(git, root string) http.Handler {
	return &cgi.Handler{
		Path: git,
		Args: []string{"-c", "http.receivepack=true", "-c", "gc.auto=0", "-c", "safe.directory=*", "http-backend"},
		Dir:  root,
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + os.DevNull,
		},
	}
}
