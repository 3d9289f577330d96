package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// compareTrees compares an updated tree with the original and with the files that had to change.
func compareTrees(original, expected, tree string) (verdict, error) {
	var found verdict
	files, err := filesUnder(original)
	if err != nil {
		return found, err
	}
	for file := range files {
		wanted, err := os.ReadFile(filepath.Join(expected, file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			touched, err := differs(filepath.Join(original, file), filepath.Join(tree, file))
			if err != nil {
				return found, err
			}
			if touched {
				found.OthersTouched++
			}
		case err != nil:
			return found, err
		default:
			found.ToChange++
			got, err := os.ReadFile(filepath.Join(tree, file))
			if err == nil && bytes.Equal(got, wanted) {
				found.Exact++
			}
		}
	}
	updated, err := filesUnder(tree)
	if err != nil {
		return found, err
	}
	for file := range updated {
		if !files[file] {
			found.OthersTouched++
		}
	}
	return found, nil
}

// filesUnder returns the relative paths of everything in a tree that is no directory.
func filesUnder(root string) (map[string]bool, error) {
	files := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, path)
		files[relative] = true
		return err
	})
	return files, err
}

// differs says whether a copied file was written since: its time, its mode or its content is another, or
// it is gone.
func differs(original, copied string) (bool, error) {
	before, err := os.Lstat(original)
	if err != nil {
		return false, err
	}
	after, err := os.Lstat(copied)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if before.Mode() != after.Mode() || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return true, nil
	}
	wanted, err := os.ReadFile(original)
	if err != nil {
		return false, err
	}
	got, err := os.ReadFile(copied)
	return !bytes.Equal(got, wanted), err
}
