// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package contexts

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"sync"

	"sandpit.dev/fault"
)

// dockerfileName is what builds look for in a context.
const dockerfileName = "Dockerfile"

// Archive returns one archive of a Dockerfile and of what the archives of a project have, of which later ones go before
// earlier ones. It is whole whatever is removed meanwhile. Its reader takes it for hostile, as it was sent.
func (s *Store) Archive(project, dockerfile string, hashes []string) (io.ReadCloser, error) {
	var files []*os.File
	done := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	if len(hashes) > 0 {
		root, err := s.root(project)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		for _, hash := range hashes {
			f, err := s.open(root, project, hash)
			if err != nil {
				done()
				return nil, err
			}
			files = append(files, f)
		}
	}
	r, w := io.Pipe()
	a := &archive{PipeReader: r}
	a.wg.Go(func() {
		defer done()
		w.CloseWithError(join(w, dockerfile, files))
	})
	return a, nil
}

// open opens an archive of a project.
func (s *Store) open(root *os.Root, project, hash string) (*os.File, error) {
	if err := CheckHash("contextHashes", hash); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[project]; p == nil || p.objects[hash].Hash == "" {
		return nil, missing(hash)
	}
	f, err := root.Open(hash)
	if err != nil {
		return nil, unavailable(err)
	}
	return f, nil
}

// archive is one that is being written while it is read.
type archive struct {
	*io.PipeReader
	wg sync.WaitGroup
}

// Close ends the writing, and waits for that.
func (a *archive) Close() error {
	err := a.PipeReader.Close()
	a.wg.Wait()
	return err
}

// join writes the Dockerfile and all archives as one. The last of entries with the same name is taken, and of directories all.
func join(w io.Writer, dockerfile string, files []*os.File) error {
	out := tar.NewWriter(w)
	seen := map[string]bool{dockerfileName: true}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dockerfileName, Mode: 0o644, Size: int64(len(dockerfile))}); err != nil {
		return err
	}
	if _, err := io.WriteString(out, dockerfile); err != nil {
		return err
	}
	for _, f := range slices.Backward(files) {
		if err := copyEntries(out, f, seen); err != nil {
			return err
		}
	}
	return out.Close()
}

func copyEntries(out *tar.Writer, f *os.File, seen map[string]bool) error {
	in, own := tar.NewReader(f), make(map[string]bool)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			for name := range own {
				seen[name] = true
			}
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "the files that were sent for the build are no whole tar archive").WithRemedy("send them again")
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeDir {
			if seen[name] {
				continue
			}
			own[name] = true // twice in one archive is its reader's to refuse
		}
		h.Format = tar.FormatPAX
		if err := out.WriteHeader(h); err != nil {
			return fault.Wrap(fault.Invalid, err, "the files that were sent for the build have an entry that no archive has")
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}
