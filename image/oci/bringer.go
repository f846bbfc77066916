// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
)

// Bringer brings images for a project, or for who runs the server. Names of images are the same for all projects,
// so a project names what has no name yet, or what it named itself; it speaks to registries without the
// operator's credentials, over https and at public addresses, unless the operator lets projects use an entry;
// and all that it brought and is there stays within [Options.ProjectBytes].
type Bringer struct {
	store   *Store
	project string // "": who runs the server
}

// As returns who brings images for a project; "" is who runs the server, who may name anything.
func (s *Store) As(project string) Bringer { return Bringer{s, project} }

// Pull is [Store.Pull] for the project.
func (b Bringer) Pull(ctx context.Context, text string) (Image, error) {
	ref, err := ParseReference(text)
	if err != nil {
		return Image{}, err
	}
	if err := b.may(ref.String()); err != nil {
		return Image{}, err
	}
	return b.store.pulled(ctx, ref, b)
}

// Import is [Store.Import] for the project.
func (b Bringer) Import(ctx context.Context, r io.Reader, as string) ([]Image, error) {
	return b.store.importAs(ctx, r, as, b)
}

// Commit is [Store.Commit] for the project.
func (b Bringer) Commit(ctx context.Context, c Commit) (Image, error) {
	return b.store.commitAs(ctx, c, b)
}

// remote returns how registries are spoken to.
func (b Bringer) remote() *remote {
	if b.project == "" {
		return b.store.remote
	}
	return b.store.anonymous
}

// forProjects are the registries as projects may use them.
func forProjects(all []Registry) []Registry {
	var out []Registry
	for _, r := range all {
		if r.Projects {
			out = append(out, r)
		}
	}
	return out
}

// ownersName is the file that says which names projects have given, and which images without a name are theirs.
const ownersName = "owners.json"

func (s *Store) readOwners() (map[string]string, error) {
	out := make(map[string]string)
	data, err := os.ReadFile(filepath.Join(s.dir, ownersName))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "whose images are whose cannot be read").
			WithRemedy("remove %s; the names that projects gave are the operator's then", filepath.Join(s.dir, ownersName))
	}
	return out, nil
}

// may reports whether the project may give these names: early, before there is work. It is asked again when they are given.
func (b Bringer) may(names ...string) error {
	if b.project == "" {
		return nil
	}
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.checkNames(s.references, s.owners, names)
}

// checkNames refuses names that are somebody else's.
func (b Bringer) checkNames(references, owners map[string]string, names []string) error {
	for _, n := range names {
		if _, taken := references[n]; taken && owners[n] != b.project {
			ref, _ := ParseReference(n)
			return fault.New(fault.Denied, "the name %s is of an image that others brought, and means it for all projects", shown(ref.Familiar())).
				WithRemedy("use the image as it is, give yours another name, or ask who runs the server")
		}
	}
	return nil
}

// name has references mean an image, from now on, or notes whose it is if it has none.
func (b Bringer) name(img Image, names []string) error {
	s := b.store
	return s.rename(func(references, owners map[string]string) error {
		if b.project == "" {
			for _, n := range names {
				references[n] = img.Digest
				delete(owners, n)
			}
			delete(owners, img.Digest)
			return nil
		}
		var fresh []string
		for _, n := range names {
			if references[n] != img.Digest {
				fresh = append(fresh, n)
			}
		}
		if err := b.checkNames(references, owners, fresh); err != nil {
			return err
		}
		_, known := owners[img.Digest]
		named := false
		for _, d := range references {
			named = named || d == img.Digest
		}
		for _, n := range fresh {
			references[n], owners[n] = img.Digest, b.project
		}
		if len(names) == 0 && !known && !named {
			owners[img.Digest] = b.project
		}
		if used := s.bytesOf(b.project, references, owners); used > s.projectBytes {
			return s.tooMuch(b.project, used)
		}
		return nil
	})
}

// bytesOf returns how much a project has brought that is there. The caller holds mu.
func (s *Store) bytesOf(project string, references, owners map[string]string) (total int64) {
	seen := make(map[string]bool)
	for name, of := range owners {
		digest := name
		if !isDigest(name) {
			digest = references[name]
		}
		if of == project && !seen[digest] {
			seen[digest] = true
			total += s.images[digest].SizeBytes
		}
	}
	return total
}

func (s *Store) tooMuch(project string, bytes int64) error {
	return fault.New(fault.Exhausted, "the images that the project %s brought come to %d MiB, and a project may have %d (images.project_max_mb)", project, bytes>>20, s.projectBytes>>20).
		WithRemedy("delete one that is not needed, or ask who runs the server")
}

// left returns the limits of one more image of the project.
func (b Bringer) left() (Limits, error) {
	s := b.store
	l := s.limits
	if b.project == "" {
		return l, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.bytesOf(b.project, s.references, s.owners)
	if used >= s.projectBytes {
		return l, s.tooMuch(b.project, used)
	}
	l.Bytes = min(l.Bytes, s.projectBytes-used)
	return l, nil
}

// writeOwners writes whose what is, without what is gone.
func (s *Store) writeOwners(references, owners map[string]string) error {
	maps.DeleteFunc(owners, func(name, _ string) bool {
		if isDigest(name) {
			_, err := os.Lstat(filepath.Join(s.dir, imagesName, directoryOf(name)))
			return errors.Is(err, fs.ErrNotExist)
		}
		_, ok := references[name]
		return !ok
	})
	data, err := json.MarshalIndent(owners, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.dir, ownersName), append(data, '\n'), 0o600)
}

// key tells pulls apart: those of projects share nothing with others', since what they are let see may be another thing.
func (b Bringer) key(ref Reference) string {
	if b.project == "" {
		return ref.String()
	}
	return strings.Join([]string{"project", b.project, ref.String()}, " ")
}
