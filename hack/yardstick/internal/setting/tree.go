package setting

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/kio"
)

// Result is the result of an update.
type Result struct {
	Changed    int              `json:"changed"`
	Set        int              `json:"set"`
	Unparsable []UnparsableFile `json:"unparsable"`
}

// UnparsableFile is a marked file that could not be read.
type UnparsableFile struct {
	File  string `json:"file"`
	Cause string `json:"cause"`
}

// markerKey is the text that a file must contain to be parsed.
var markerKey = []byte(`"$imagepolicy"`)

// UpdateTree updates the files under a directory in place.
func UpdateTree(directory string, wanted map[string]string) (Result, error) {
	done := Result{Unparsable: []UnparsableFile{}}
	err := filepath.WalkDir(directory, func(path string, found fs.DirEntry, err error) error {
		if err != nil || !found.Type().IsRegular() || !isCandidate(path) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(content, markerKey) {
			return err
		}
		updated, set, problem := updateDocuments(content, wanted)
		if problem != nil {
			relative, err := filepath.Rel(directory, path)
			done.Unparsable = append(done.Unparsable, UnparsableFile{relative, problem.Error()})
			return err
		}
		if set == 0 {
			return nil
		}
		done.Changed++
		done.Set += set
		return overwrite(path, updated)
	})
	return done, err
}

// isCandidate says whether a file is looked at, going by its name.
func isCandidate(path string) bool {
	extension := filepath.Ext(path)
	return extension == ".yaml" || extension == ".yml" || filepath.Base(path) == "Kustomization"
}

// updateDocuments returns the content of a file with its marked scalars set, and how many were set.
//
// The reader keeps its bookkeeping in annotations, so that, as in the known updaters, a document must be
// a mapping. Other than those it leaves a List in one piece.
func updateDocuments(content []byte, wanted map[string]string) (updated []byte, set int, err error) {
	reader := kio.ByteReader{Reader: bytes.NewReader(content), PreserveSeqIndent: true, DisableUnwrapping: true}
	documents, err := reader.Read()
	if err != nil {
		return nil, 0, err
	}
	for _, document := range documents {
		set += setMarked(document.YNode(), wanted)
	}
	if set == 0 {
		return nil, 0, nil
	}
	var buffer bytes.Buffer
	err = kio.ByteWriter{Writer: &buffer}.Write(documents)
	return buffer.Bytes(), set, err
}

// overwrite replaces the content of an existing file in place; its mode stays.
func overwrite(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644)
}
