// History writes a fleet as the history of a git repository, for git fast-import.
//
// Usage: history COMMITS FLEET >STREAM
//
// FLEET is a directory written by the program fleet. The branch main has COMMITS commits: the first has the files as
// they are before the update, and those that follow bring the changed files, some in each, so that with the last one
// all is as the update should leave it; a single commit has all that. Every run writes the same bytes.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// firstCommit is when the first commit was made, in seconds since 1970; each other follows an hour after the one
// before it.
const firstCommit = 1_700_000_000

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: history COMMITS FLEET")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

func run(number, fleet string) error {
	commits, err := strconv.Atoi(number)
	if err != nil || commits < 1 {
		return fmt.Errorf("%q is no number of commits", number)
	}
	output := bufio.NewWriter(os.Stdout)
	if err := write(output, commits, filepath.Join(fleet, "in"), filepath.Join(fleet, "expected")); err != nil {
		return err
	}
	return output.Flush()
}

func write(output io.Writer, commits int, before, after string) error {
	first, err := filesUnder(before)
	if err != nil {
		return err
	}
	changed, err := filesUnder(after)
	if err != nil {
		return err
	}
	written := 0
	for commit := range commits {
		when := firstCommit + 3600*commit
		fmt.Fprintf(output, "commit refs/heads/main\ncommitter Fleet <fleet@example.com> %d +0000\n", when)
		writeData(output, fmt.Appendf(nil, "Change %d of the fleet\n", commit+1))
		if commit == 0 {
			if err := writeFiles(output, before, first); err != nil {
				return err
			}
		}
		until := len(changed)
		if commit < commits-1 {
			until = len(changed) * commit / (commits - 1)
		}
		if err := writeFiles(output, after, changed[written:until]); err != nil {
			return err
		}
		written = until
	}
	_, err = fmt.Fprintln(output, "done")
	return err
}

func writeFiles(output io.Writer, directory string, paths []string) error {
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Join(directory, path))
		if err != nil {
			return err
		}
		fmt.Fprintf(output, "M 100644 inline %s\n", strconv.Quote(filepath.ToSlash(path)))
		writeData(output, content)
	}
	return nil
}

func writeData(output io.Writer, content []byte) {
	fmt.Fprintf(output, "data %d\n%s\n", len(content), content)
}

// filesUnder returns the relative paths of the files in a directory, in rising order; none where there is no such
// directory.
func filesUnder(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, path)
		files = append(files, relative)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.Sort(files)
	return files, err
}
