// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Options configure a store; only Dir is required.
type Options struct {
	// Dir holds the images; it is made when missing. Its parent has to be the caller's alone.
	Dir    string
	Limits Limits
	// Public reports whether an address is of the public internet: others are reached only for registries
	// that say Private. nil: nothing is pulled.
	Public     func(netip.Addr) bool
	Registries []Registry     // that the operator says something of
	Roots      *x509.CertPool // that registries are verified by; nil: the host's
	// ProjectBytes is how much a project may bring, of images that are there; zero: 20 GiB.
	ProjectBytes int64
	// Changed is called when an image or a name is there, or gone; it does not wait. nil: nobody hears of it.
	Changed func()
	Logger  *slog.Logger // nil logs nothing
}

// Store keeps images in one directory, which several processes may share. It is safe for concurrent use.
type Store struct {
	dir          string
	limits       Limits
	arch         string
	projectBytes int64
	log          *slog.Logger
	flush        func(dir string) error // to the disk, all of a file system

	mu         sync.Mutex
	images     map[string]Image // by digest
	references map[string]string
	owners     map[string]string        // projects, by the names and the digests that are theirs
	turns      map[string]chan struct{} // layers and images that are being made
	pulls      map[string]*pull         // by reference
	failed     map[string]error         // likewise
	changed    func()
	owed       []Layer // of removed images, to be looked at when no image is being made
	closed     bool
	anonymous  *remote // as projects speak to registries
	remote     *remote // nil: nothing is pulled
	wg         sync.WaitGroup
}

// Image is one image of this machine. It is complete and never changes; what its fields refer to is shared
// by all who hold it.
type Image struct {
	Digest       string    `json:"digest"`        // of its manifest; of its config where the archive had no manifest
	ConfigDigest string    `json:"config_digest"` // what Docker calls the image's id
	Architecture string    `json:"architecture"`
	Config       Config    `json:"config"`
	Layers       []Layer   `json:"layers"`     // the lowest first
	SizeBytes    int64     `json:"size_bytes"` // of its files; those of layers are shared with other images
	Files        int64     `json:"files"`
	Devices      int       `json:"devices,omitempty"` // nodes that were left out: a sandbox has its own
	Foreign      int       `json:"foreign,omitempty"` // files whose owner a sandbox does not have, given to nobody
	Created      time.Time `json:"created"`           // here
	Built        bool      `json:"built,omitempty"`   // it was made here, see Commit
	// Root is the absolute path of its files. Nothing may write there.
	Root string `json:"-"`
	// References are the names that mean it, sorted.
	References []string `json:"-"`
}

// Layer is one layer of an image.
type Layer struct {
	DiffID string `json:"diff_id"`
	Digest string `json:"digest"` // as it was transported
	Size   int64  `json:"size"`   // likewise
}

// manifestFile is image.json.
type manifestFile struct {
	Schema int `json:"schema"`
	Image
}

const (
	imageSchema = 1
	imageFile   = "image.json"
	rootName    = "rootfs"
	layersName  = "layers"
	imagesName  = "images"
	workName    = "work"
	refsName    = "references.json"
	lockName    = ".lock"
	digestDir   = 12 // digits of a digest that name its directory
)

// orphanAge is how long layers of images that never came to be are kept for the next try.
const orphanAge = 24 * time.Hour

// Open makes the directory, and removes what killed processes left unless another one works there.
func Open(o Options) (*Store, error) {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	changed := o.Changed
	if changed == nil {
		changed = func() {}
	}
	s := &Store{changed: changed, dir: o.Dir, limits: o.Limits.filled(), arch: hostArch(), projectBytes: cmp.Or(o.ProjectBytes, 20<<30), log: log, flush: syncAll, images: make(map[string]Image), turns: make(map[string]chan struct{}), pulls: make(map[string]*pull), failed: make(map[string]error)}
	if o.Public != nil {
		s.remote, s.anonymous = newRemote(o.Registries, o.Public, o.Roots), newRemote(forProjects(o.Registries), o.Public, o.Roots)
	}
	for _, dir := range []string{"", layersName, imagesName, workName} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	l, err := s.lock(unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	if l != nil {
		err = s.sweep()
		l.release()
	}
	if err == nil {
		err = s.read()
	}
	return s, err
}

// sweep removes what is not finished, and layers that no image came to use. The caller has the lock alone.
func (s *Store) sweep() error {
	work := filepath.Join(s.dir, workName)
	entries, err := os.ReadDir(work)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := removeAll(filepath.Join(work, e.Name())); err != nil {
			return err
		}
	}
	_, err = s.collect(orphanAge, nil, false)
	return err
}

// Refresh reads anew which images there are: another process may have removed one.
func (s *Store) Refresh() error { return s.read() }

// read reads which images there are, and what references mean.
func (s *Store) read() error {
	images, err := s.scan()
	if err != nil {
		return err
	}
	references, err := s.readReferences()
	if err != nil {
		return err
	}
	owners, err := s.readOwners()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images, s.references, s.owners = images, references, owners
	return nil
}

func (s *Store) scan() (map[string]Image, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, imagesName))
	if err != nil {
		return nil, err
	}
	images := make(map[string]Image)
	for _, e := range entries {
		img, err := s.load(e.Name())
		if err != nil {
			// One that cannot be read must not hide the rest.
			s.log.Warn("an image on disk cannot be read", "path", filepath.Join(s.dir, imagesName, e.Name()), "error", err)
			continue
		}
		images[img.Digest] = img
	}
	return images, nil
}

func (s *Store) load(name string) (Image, error) {
	dir := filepath.Join(s.dir, imagesName, name)
	data, err := os.ReadFile(filepath.Join(dir, imageFile))
	if err != nil {
		return Image{}, err
	}
	var m manifestFile
	if err := json.Unmarshal(data, &m); err != nil {
		return Image{}, err
	}
	if m.Schema != imageSchema || !isDigest(m.Digest) || directoryOf(m.Digest) != name {
		return Image{}, fmt.Errorf("it belongs to another place (schema %d, digest %q)", m.Schema, m.Digest)
	}
	m.Root = filepath.Join(dir, rootName)
	if info, err := os.Lstat(m.Root); err != nil || !info.IsDir() {
		return Image{}, fmt.Errorf("it has no %s: %w", rootName, err)
	}
	return m.Image, nil
}

// directoryOf is the name of the directory of an image.
func directoryOf(digest string) string { return strings.TrimPrefix(digest, digestPrefix)[:digestDir] }

// List returns all images, by their names.
func (s *Store) List() []Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.images))
	for i := range all {
		all[i].References = s.namesOf(all[i].Digest)
	}
	slices.SortFunc(all, func(a, b Image) int { return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Digest, b.Digest)) })
	return all
}

// Name is the image's first reference as people write it, or its digest.
func (i Image) Name() string {
	for _, text := range i.References {
		if r, err := ParseReference(text); err == nil {
			return r.Familiar()
		}
	}
	return i.Digest
}

// told is called when n bytes more of a layer have come, and when it is ready.
type told func(layer int, n int64, ready bool)

// install makes the image that p is the plan of, unless it is there, and names it. The caller has begun.
func (s *Store) install(ctx context.Context, p plan, b Bringer, tell told) (Image, error) {
	give, err := s.turn(ctx, p.digest)
	if err != nil {
		return Image{}, err
	}
	defer give()
	img, err := s.FindDigest(strings.TrimPrefix(p.digest, digestPrefix))
	fresh := fault.Is(err, fault.NotFound)
	if fresh {
		var limits Limits
		if limits, err = b.left(); err == nil {
			img, err = s.assemble(ctx, p, limits, tell)
		}
	}
	if err != nil {
		return Image{}, err
	}
	if err := b.name(img, p.names); err != nil {
		if fresh {
			s.forget(img)
		}
		return Image{}, err
	}
	return s.FindDigest(strings.TrimPrefix(img.Digest, digestPrefix))
}

// forget removes an image that was made and may not be named. The caller has its turn.
func (s *Store) forget(img Image) {
	if err := s.discard(filepath.Join(s.dir, imagesName, directoryOf(img.Digest))); err != nil {
		s.log.Warn("an image that was not to be kept cannot be removed", "digest", img.Digest, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.images, img.Digest)
	s.owed = append(s.owed, img.Layers...)
}

// parallel is how many layers of an image are made at a time.
const parallel = 3

// assemble makes the image on disk.
func (s *Store) assemble(ctx context.Context, p plan, limits Limits, tell told) (Image, error) {
	left := newBudget(limits, s.dir)
	layers := make([]*layer, len(p.layers))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, b := range p.layers {
		group.Go(func() (err error) {
			layers[i], err = s.layer(gctx, b, left, func(n int64) { tell(i, n, false) })
			if err == nil {
				tell(i, 0, true)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Image{}, err
	}
	work, err := os.MkdirTemp(filepath.Join(s.dir, workName), "image-")
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = removeAll(work) }() // what is finished is elsewhere by then
	path := filepath.Join(work, rootName)
	if err := os.Mkdir(path, 0o755); err != nil {
		return Image{}, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return Image{}, err
	}
	defer root.Close()
	own := os.Geteuid() == 0
	if err := assemble(ctx, root, layers, own); err != nil {
		return Image{}, err
	}
	if err := complete(ctx, root, own, p.meta.User, left); err != nil {
		return Image{}, err
	}
	img := Image{Digest: p.digest, ConfigDigest: p.config, Architecture: cmp.Or(p.arch, s.arch), Config: p.meta, Created: time.Now().UTC()}
	for i, b := range p.layers {
		img.Layers = append(img.Layers, Layer{DiffID: b.diffID, Digest: b.digest, Size: b.size})
		img.Devices += layers[i].Devices
		img.Foreign += layers[i].Foreign
	}
	if img.SizeBytes, img.Files, err = measure(path); err != nil {
		return Image{}, err
	}
	data, err := json.MarshalIndent(manifestFile{imageSchema, img}, "", "  ")
	if err != nil {
		return Image{}, err
	}
	if err := os.WriteFile(filepath.Join(work, imageFile), append(data, '\n'), 0o600); err != nil {
		return Image{}, err
	}
	if err := s.flush(work); err != nil {
		return Image{}, err
	}
	final := filepath.Join(s.dir, imagesName, directoryOf(p.digest))
	if err := os.Rename(work, final); err != nil {
		// Another process may have been faster.
		if found, lerr := s.load(directoryOf(p.digest)); lerr != nil || found.Digest != p.digest {
			return Image{}, err
		}
	}
	if err := syncDir(filepath.Dir(final)); err != nil {
		return Image{}, err
	}
	if img, err = s.load(directoryOf(p.digest)); err != nil {
		return Image{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images[img.Digest] = img
	s.changed()
	return img, nil
}

// measure returns what a tree takes on disk and how many entries it has.
func measure(dir string) (size, files int64, err error) {
	counted := make(map[inode]bool)
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fs.ErrInvalid
		}
		if id := (inode{st.Dev, st.Ino}); d.IsDir() || !counted[id] {
			size += st.Blocks * 512
			counted[id] = true
		}
		return nil
	})
	return size, files, err
}

// turn waits until nobody else makes what key names.
func (s *Store) turn(ctx context.Context, key string) (give func(), err error) {
	for {
		s.mu.Lock()
		done := s.turns[key]
		if done == nil {
			mine := make(chan struct{})
			s.turns[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.turns, key)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
