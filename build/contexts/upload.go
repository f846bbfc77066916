// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package contexts

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// Begin begins an archive that comes in parts, and returns the name of that upload.
func (s *Store) Begin(project, hash string) (string, error) {
	if err := CheckHash("key", hash); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, u := range s.uploads {
		if u.project == project {
			n++
		}
	}
	if n >= MaxUploads {
		return "", tooMany(MaxUploads, "uploads that are not whole")
	}
	id := strings.ToLower(rand.Text())
	s.uploads[id] = &upload{project: project, hash: hash, parts: make(map[int]Object), at: s.o.Now()}
	return id, nil
}

func noUpload(id string) error {
	return fault.New(fault.NotFound, "there is no upload %.40q of this archive", id).WithRemedy("begin it again: one of which nothing comes for %v is ended", KeepPart)
}

// find returns an upload of an archive of a project. The caller holds mu.
func (s *Store) find(project, hash, id string) (*upload, error) {
	u := s.uploads[id]
	if u == nil || u.project != project || u.hash != hash {
		return nil, noUpload(id)
	}
	return u, nil
}

func partName(id string, n int, salt string) string { return fmt.Sprintf("part-%s-%d-%s", id, n, salt) }

// PutPart keeps a part of an upload, in place of what has the number; verify is as for Put.
func (s *Store) PutPart(project, hash, id string, n int, r io.Reader, verify func() error) (Object, error) {
	if n < 1 || n > MaxParts {
		return Object{}, fault.InvalidField("partNumber", "%d is outside 1 to %d", n, MaxParts)
	}
	s.mu.Lock()
	_, err := s.find(project, hash, id)
	s.mu.Unlock()
	if err != nil {
		return Object{}, err
	}
	name := partName(id, n, rand.Text())
	o, err := s.write(project, name, r, verify)
	if err != nil {
		return Object{}, err
	}
	o.Hash = name
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(project, hash, id)
	if err != nil { // it ended meanwhile
		s.dropFile(project, o)
		return Object{}, err
	}
	if was, ok := u.parts[n]; ok {
		s.dropFile(project, was)
	}
	u.parts[n], u.at = o, s.o.Now()
	return o, nil
}

// dropFile removes a part. The caller holds mu.
func (s *Store) dropFile(project string, o Object) {
	if root, err := s.root(project); err == nil {
		_ = root.Remove(o.Hash)
		root.Close()
	}
	s.of(project).bytes -= o.Size
}

// dropUpload removes an upload with its parts. The caller holds mu.
func (s *Store) dropUpload(id string) {
	u := s.uploads[id]
	delete(s.uploads, id)
	for _, o := range u.parts {
		s.dropFile(u.project, o)
	}
}

// Abort ends an upload.
func (s *Store) Abort(project, hash, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(project, hash, id); err != nil {
		return err
	}
	s.dropUpload(id)
	return nil
}

// Part names a part of an upload.
type Part struct {
	Number int
	Tag    string // of its content, as PutPart told
}

// Complete makes the archive of an upload of its parts, in order.
func (s *Store) Complete(project, hash, id string, parts []Part) (Object, error) {
	s.mu.Lock()
	u, err := s.find(project, hash, id)
	var ordered []Object
	if err == nil {
		if len(parts) == 0 || len(parts) > MaxParts || !slices.IsSortedFunc(parts, func(a, b Part) int { return a.Number - b.Number }) {
			err = fault.New(fault.Invalid, "the parts of the upload are none, too many or not in order")
		}
		for i, p := range parts {
			o, ok := u.parts[p.Number]
			if err == nil && (!ok || o.Tag != p.Tag || i > 0 && parts[i-1].Number == p.Number) {
				err = fault.New(fault.Invalid, "part %d of the upload is not here, or another one than is named", p.Number)
			}
			ordered = append(ordered, o)
		}
	}
	if err == nil {
		delete(s.uploads, id) // nobody adds to it, or ends it, from now on
	}
	s.mu.Unlock()
	if err != nil {
		return Object{}, err
	}
	for _, p := range parts {
		delete(u.parts, p.Number)
	}
	pr := &partsReader{s: s, project: project, left: ordered}
	defer func() {
		pr.end()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, o := range u.parts { // that were not named
			s.dropFile(project, o)
		}
	}()
	return s.Put(project, hash, pr, nil)
}

// partsReader reads the parts of an upload one behind the other, and removes each when it is read: an archive and its parts
// take little more room than the archive.
type partsReader struct {
	s       *Store
	project string
	left    []Object
	at      *os.File // the first of left
}

func (r *partsReader) Read(p []byte) (int, error) {
	for {
		if r.at == nil {
			if len(r.left) == 0 {
				return 0, io.EOF
			}
			root, err := r.s.root(r.project)
			if err != nil {
				return 0, err
			}
			r.at, err = root.Open(r.left[0].Hash)
			root.Close()
			if err != nil {
				return 0, unavailable(err)
			}
		}
		n, err := r.at.Read(p)
		if n > 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, unavailable(err)
		}
		r.next()
	}
}

// next removes the part that was read.
func (r *partsReader) next() {
	if r.at != nil {
		_ = r.at.Close()
		r.at = nil
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.dropFile(r.project, r.left[0])
	r.left = r.left[1:]
}

// end removes what is left.
func (r *partsReader) end() {
	for len(r.left) > 0 {
		r.next()
	}
}
