// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package contexts keeps the files that clients send ahead for the build of a Dockerfile: tar archives, each by a hash that its
// client chose, of one project. It keeps them until they were built, a day at most, and knows no wire by which they come.
//
// No name of a caller's is ever one of the host's: a project's directory is named after a hash of its name, and a hash has
// one form. What is in an archive is read by [sandpit.dev/image/dockerfile.ReadContext] alone, which takes it for hostile.
package contexts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// Bounds of what a project has here, and of its age.
const (
	MaxBytes   = 4 << 30 // what comes included: as much as a build takes
	MaxObjects = 1000
	MaxUploads = 64 // that are not whole
	MaxParts   = 10_000
	Keep       = 24 * time.Hour
	KeepPart   = time.Hour // of an upload of which nothing more comes
	sweepEvery = 10 * time.Minute
	perLook    = 16 << 20 // bytes between two looks at the bounds
)

// Options of a Store.
type Options struct {
	Dir    string           // required; it is the store's own
	Room   func() error     // why the disk takes nothing more; nil: it does
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discard
}

// Store keeps contexts. It is safe for concurrent use.
type Store struct {
	o Options

	mu       sync.Mutex
	projects map[string]*usage
	uploads  map[string]*upload
}

// usage is what a project has here.
type usage struct {
	bytes   int64
	objects map[string]Object
}

// Object is one archive.
type Object struct {
	Hash string
	Size int64
	Tag  string // of its content
	At   time.Time
}

// upload is an archive that comes in parts. It belongs to the store's mu.
type upload struct {
	project, hash string
	parts         map[int]Object // Hash is empty
	at            time.Time
}

// Open opens a store: what an earlier server has left in the directory is gone, for nobody's build is going on then.
func Open(o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.RemoveAll(o.Dir); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "what is left of files for builds cannot be removed")
	}
	return &Store{o: o, projects: make(map[string]*usage), uploads: make(map[string]*upload)}, nil
}

// Run removes what is too old, until ctx is done.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.Sweep()
		}
	}
}

// Sweep removes what is too old now.
func (s *Store) Sweep() {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.uploads {
		if now.Sub(u.at) > KeepPart {
			s.dropUpload(id)
		}
	}
	for name, p := range s.projects {
		for hash, o := range p.objects {
			if now.Sub(o.At) > Keep {
				s.dropObject(name, hash)
			}
		}
		if len(p.objects) == 0 && p.bytes == 0 {
			delete(s.projects, name)
		}
	}
}

var validHash = regexp.MustCompile(`^[0-9a-f]{32}$`)

// CheckHash checks the hash of an archive, which is an MD5 in hexadecimal.
func CheckHash(field, hash string) error {
	if !validHash.MatchString(hash) {
		return fault.InvalidField(field, "%.80q is no hash of 32 hexadecimal digits", hash)
	}
	return nil
}

// of returns the usage of a project. The caller holds mu.
func (s *Store) of(project string) *usage {
	u := s.projects[project]
	if u == nil {
		u = &usage{objects: make(map[string]Object)}
		s.projects[project] = u
	}
	return u
}

// folder is the directory of a project.
func folder(project string) string {
	sum := sha256.Sum256([]byte(project))
	return hex.EncodeToString(sum[:16])
}

// root opens the directory of a project.
func (s *Store) root(project string) (*os.Root, error) {
	dir := filepath.Join(s.o.Dir, folder(project))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unavailable(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unavailable(err)
	}
	return root, nil
}

func unavailable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the disk of files for builds does not answer")
}

// Find returns an archive of a project; fault.NotFound if it is not here.
func (s *Store) Find(project, hash string) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[project]; p != nil {
		if o, ok := p.objects[hash]; ok {
			return o, nil
		}
	}
	return Object{}, missing(hash)
}

func missing(hash string) error {
	return fault.New(fault.NotFound, "there are no files for a build with the hash %.40q here", hash).
		WithRemedy("send them again: they are kept until they were built, and %v at most", Keep)
}

// Put keeps what r has to its end, in place of what has the hash. verify, if not nil, is asked at the end whether it came
// unchanged; what it refuses is not kept.
func (s *Store) Put(project, hash string, r io.Reader, verify func() error) (Object, error) {
	if err := CheckHash("key", hash); err != nil {
		return Object{}, err
	}
	s.mu.Lock()
	p := s.of(project)
	_, there := p.objects[hash]
	full := !there && len(p.objects) >= MaxObjects
	s.mu.Unlock()
	if full {
		return Object{}, tooMany(MaxObjects, "archives of files for builds")
	}
	temporary := "new-" + rand.Text()
	o, err := s.write(project, temporary, r, verify)
	if err != nil {
		return Object{}, err
	}
	o.Hash = hash
	return o, s.commit(project, temporary, o)
}

func tooMany(most int, what string) error {
	return fault.New(fault.Exhausted, "the project has %d %s, and more are not kept", most, what).WithRemedy("build what was sent, or wait until it is a day old")
}

// commit moves a file that was written to its place. On an error it is removed.
func (s *Store) commit(project, temporary string, o Object) error {
	root, err := s.root(project)
	if err != nil {
		s.release(project, o.Size)
		return err
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := root.Rename(temporary, o.Hash); err != nil {
		_ = root.Remove(temporary)
		s.of(project).bytes -= o.Size
		return unavailable(err)
	}
	p := s.of(project)
	p.bytes -= p.objects[o.Hash].Size // of what it takes the place of
	p.objects[o.Hash] = o
	return nil
}

func (s *Store) release(project string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(project).bytes -= n
}

// write writes a file, whose bytes are the project's from the first on. On an error nothing is left.
func (s *Store) write(project, name string, r io.Reader, verify func() error) (o Object, err error) {
	root, err := s.root(project)
	if err != nil {
		return Object{}, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Object{}, unavailable(err)
	}
	taken := &taker{s: s, project: project}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = unavailable(cerr)
		}
		s.release(project, taken.taken-taken.used)
		if err != nil {
			s.release(project, taken.used)
			_ = root.Remove(name)
		}
	}()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(taken, f, sum), r)
	if err != nil {
		return Object{}, err
	}
	if verify != nil {
		if err := verify(); err != nil {
			return Object{}, err
		}
	}
	return Object{Size: n, Tag: hex.EncodeToString(sum.Sum(nil)[:16]), At: s.o.Now()}, nil
}

// taker takes room for what is written, ahead of it.
type taker struct {
	s           *Store
	project     string
	taken, used int64
}

func (t *taker) Write(p []byte) (int, error) {
	for t.used+int64(len(p)) > t.taken {
		if err := t.s.o.Room(); err != nil {
			return 0, err
		}
		t.s.mu.Lock()
		u := t.s.of(t.project)
		full := u.bytes+perLook > MaxBytes
		if !full {
			u.bytes += perLook
			t.taken += perLook
		}
		t.s.mu.Unlock()
		if full {
			return 0, fault.New(fault.Exhausted, "the files that the project has sent for builds have more than %d bytes", int64(MaxBytes)).
				WithRemedy("send less, or build what was sent: files are kept until then, and %v at most", Keep)
		}
	}
	t.used += int64(len(p))
	return len(p), nil
}

// dropObject removes an archive. The caller holds mu.
func (s *Store) dropObject(project, hash string) {
	p := s.projects[project]
	if p == nil {
		return
	}
	o, ok := p.objects[hash]
	if !ok {
		return
	}
	if root, err := s.root(project); err == nil {
		err = root.Remove(hash)
		root.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.o.Logger.Warn("files of a build cannot be removed", "error", err)
			return
		}
	}
	delete(p.objects, hash)
	p.bytes -= o.Size
}

// Remove removes archives of a project: they were built.
func (s *Store) Remove(project string, hashes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hashes {
		s.dropObject(project, h)
	}
}

// List returns the archives of a project whose hash begins with a prefix.
func (s *Store) List(project, prefix string) (all []Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.projects[project]
	if p == nil {
		return nil
	}
	for hash, o := range p.objects {
		if strings.HasPrefix(hash, prefix) {
			all = append(all, o)
		}
	}
	return all
}
