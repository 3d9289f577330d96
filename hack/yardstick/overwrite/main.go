// Overwrite puts files into a tree, each by way of a temporary file that takes the place of the old one.
// It measures the cost of writing alone.
//
// Usage: overwrite FILES TREE
//
// Every file under FILES replaces the one of the same relative path under TREE and keeps its mode.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: overwrite FILES TREE")
		os.Exit(2)
	}
	if err := overwriteAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "overwrite:", err)
		os.Exit(1)
	}
}

func overwriteAll(files, tree string) error {
	return filepath.WalkDir(files, func(path string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		relative, err := filepath.Rel(files, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return replace(filepath.Join(tree, relative), content)
	})
}

// replace replaces the content of an existing file atomically: a reader sees all of the old content or all of the new.
func replace(path string, content []byte) (err error) {
	old, err := os.Stat(path)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".overwrite-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(old.Mode().Perm()), temporary.Close())
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
