// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/image/entry"
	"sandpit.dev/image/oci"
)

// Options configure a store; only Dir is required.
type Options struct {
	// Dir holds all images and the download cache; it is made when missing.
	// Several processes may share it.
	Dir string
	// Authorities are certificates in PEM that builds trust besides those that the host trusts.
	Authorities []byte
	// Policy is the operator's. Its default is the first of the list.
	Policy Policy
	// Entries are more of the catalogue, which a [Builder] makes; see Store.Use.
	Entries []entry.Entry
	// Public, Registries and Roots say from where images of others are pulled, see [oci.Options].
	Public     func(netip.Addr) bool
	Registries []oci.Registry
	// ProjectBytes is how much a project may bring of images of others; zero: 20 GiB.
	ProjectBytes int64
	Roots        *x509.CertPool
	// References lets the policy's default be a reference of an image of others, which need not be here yet: whoever asks for
	// the default brings it.
	References bool
	// Changed is called when an image was made or named, or has been removed; it does not wait. nil: nobody hears of it.
	Changed func()
	// Logger gets the start, the stages and the end of builds; nil logs nothing.
	Logger *slog.Logger
}

// Store finds and builds images in one directory. Its methods may be called
// concurrently, and after Close they find but no longer build.
type Store struct {
	dir         string
	authorities []byte
	log         *slog.Logger
	recipes     []recipe // the default one first
	policy      atomic.Pointer[Policy]
	builder     Builder    // nil: nothing is made in sandboxes
	others      *oci.Store // images that others made
	making      making     // images that are made of Dockerfiles
	references  bool       // the default may be an image of others
	changed     func()

	mu     sync.RWMutex
	ready  map[string]Image // current, by catalogue name
	digest map[string]Image // by name and directory digits
	builds map[string]*build
	failed map[string]error
	stale  map[string]error // why the last build of one that is there failed
	closed bool

	leaving map[string]*Withdrawal // by catalogue name, of others by digest
	saving  map[string]int         // how many archives are written of an image, by digest
	held    map[string]*os.File    // locked directories of builds that were found, as digest has them
	wg      sync.WaitGroup
}

// Open makes the directory and removes what killed builds left that no build
// can continue, unless a build is going on. It builds nothing.
func Open(opts Options) (*Store, error) {
	recipes, err := withEntries(catalogue(), opts.Entries)
	if err != nil {
		return nil, err
	}
	return open(opts, recipes)
}

func open(opts Options, recipes []recipe) (*Store, error) {
	if opts.Dir == "" {
		return nil, fault.InvalidField("dir", "the directory of images is not set")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(dir, "\n\t\x00") {
		return nil, fault.InvalidField("dir", "the directory of images %s has a control character in its name", shown(dir))
	}
	if recipes, err = preferred(recipes, opts.Policy, opts.References); err != nil {
		return nil, err
	}
	// Images hold setuid programs that the host does not keep up to date: only
	// this user may reach them.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	changed := opts.Changed
	if changed == nil {
		changed = func() {}
	}
	s := &Store{
		changed: changed,
		dir:     dir, authorities: opts.Authorities, log: log, recipes: recipes, references: opts.References,
		ready: make(map[string]Image), digest: make(map[string]Image),
		builds: make(map[string]*build), failed: make(map[string]error), stale: make(map[string]error),
		leaving: make(map[string]*Withdrawal), saving: make(map[string]int), held: make(map[string]*os.File),
	}
	s.policy.Store(&opts.Policy)
	if s.others, err = oci.Open(oci.Options{Dir: filepath.Join(dir, othersName), Public: opts.Public, Registries: opts.Registries, Roots: opts.Roots, ProjectBytes: opts.ProjectBytes, Changed: changed, Logger: log}); err != nil {
		return nil, err
	}
	l, err := tryLock(dir)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return s, nil
	}
	defer l.release()
	return s, s.clean()
}

// CheckPolicy returns what is wrong with a policy for the images that there are.
func (s *Store) CheckPolicy(p Policy) error {
	_, err := fits(s.recipes, p, s.references)
	return err
}

// SetPolicy puts another policy in force, for what is asked for from now on.
func (s *Store) SetPolicy(p Policy) error {
	if err := s.CheckPolicy(p); err != nil {
		return err
	}
	s.policy.Store(&p)
	return nil
}

// fits returns the default image of a policy, or what is wrong with it. Where references may be the default, and it is one,
// the first of the catalogue is returned.
func fits(recipes []recipe, p Policy, references bool) (recipe, error) {
	if err := p.Check(); err != nil {
		return recipe{}, err
	}
	r, err := resolve(recipes, Policy{}, p.Default)
	if ref, ok := reference(p.Default); ok && references && fault.Is(err, fault.NotFound) {
		r, err = recipes[0], nil
		if p.Allows(Entry{Name: ref}, p.Default) {
			return r, nil
		}
		r.Entry = Entry{Name: ref}
	}
	if err != nil {
		e := fault.As(err)
		return recipe{}, fault.InvalidField("images.default", "%s", e.Message).WithRemedy("%s", e.Remedy)
	}
	if !p.Allows(r.Entry, p.Default) {
		return recipe{}, fault.InvalidField("images.allowed", "does not have the default image, which is %s", r.Name).
			WithRemedy("add it to the list, or name another as images.default")
	}
	return r, nil
}

// preferred puts the policy's default first.
func preferred(recipes []recipe, p Policy, references bool) ([]recipe, error) {
	r, err := fits(recipes, p, references)
	if err != nil {
		return nil, err
	}
	all := []recipe{r}
	for _, o := range recipes {
		if o.Name != r.Name {
			all = append(all, o)
		}
	}
	return all, nil
}

// clean removes dead work directories. The caller holds the lock.
func (s *Store) clean() error {
	if err := removeRest(s.dir); err != nil {
		return err
	}
	for _, r := range s.recipes {
		dir := filepath.Join(s.dir, r.Name)
		if err := removeRest(dir); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(dir, trashName)); err != nil {
			return err
		}
		work := filepath.Join(dir, workName)
		if st, err := readState(work); err == nil && st.fits(r.hash()) && r.made == nil {
			continue
		}
		if err := discard(work); err != nil {
			return err
		}
	}
	return nil
}

// Resolve returns the catalogue's entry for a name as a caller writes it, or that of an image of
// others that is here. It looks at nothing on the disk for one that is. An unknown name is
// fault.NotFound, one that cannot be a name fault.Invalid. A default that is a reference is known before it is here.
func (s *Store) Resolve(name string) (Entry, error) {
	if ref := s.orDefault(name); ref != name {
		if o, err := s.others.Find(ref); err == nil {
			return imageOf(o, nameOf(o, ref)).entry(), nil
		}
		return Entry{Name: ref}, nil
	}
	r, err := s.resolve(name)
	if fault.Is(err, fault.NotFound) {
		img, err := s.other(name, err)
		return img.entry(), err
	}
	return r.Entry, err
}

// Find returns the image for a name if it is built, and else fault.NotFound. It does not return
// an image built by an older recipe: see FindDigest. An image that was found before is returned
// without a system call.
func (s *Store) Find(ctx context.Context, name string) (Image, error) {
	name = s.orDefault(name)
	r, err := s.resolve(name)
	if fault.Is(err, fault.NotFound) {
		return s.other(name, err)
	}
	if err != nil {
		return Image{}, err
	}
	s.mu.RLock()
	img, ok := s.ready[r.Name]
	s.mu.RUnlock()
	if ok {
		return img, nil
	}
	if err := ctx.Err(); err != nil {
		return Image{}, err
	}
	img, err = s.current(r)
	if err == nil {
		err = s.keep(img)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Image{}, notBuilt(r.Name)
	}
	if err != nil {
		return Image{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving[r.Name] != nil {
		return Image{}, notBuilt(r.Name) // or not for long
	}
	s.ready[r.Name] = img
	return img, nil
}

func notBuilt(name string) error {
	return fault.New(fault.NotFound, "the image %q is not built yet", name).
		WithRemedy("wait for the server's build, or run: sandpit image build %s", name)
}

// current looks on disk for the newest image of the recipe as it is compiled in.
func (s *Store) current(r recipe) (Image, error) {
	images, err := scan(filepath.Join(s.dir, r.Name), s.skipped)
	if err != nil {
		return Image{}, err
	}
	hash := r.hash()
	images = slices.DeleteFunc(images, func(img Image) bool { return img.recipe != hash || s.leaves(r.Name, img.Digest) })
	if len(images) == 0 {
		return Image{}, notBuilt(r.Name)
	}
	return slices.MaxFunc(images, func(a, b Image) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Digest, b.Digest))
	}), nil
}

func (s *Store) skipped(path string, err error) {
	s.log.Warn("an image on disk cannot be read", "path", path, "error", err)
}

// FindDigest returns exactly the image that a sandbox was made from, also one of
// an older recipe. The digest may be given with or without "sha256:", whole or
// by its first 12 digits. One that is not on disk is fault.NotFound.
func (s *Store) FindDigest(name, digest string) (Image, error) {
	hex, err := digestHex(digest)
	if err != nil {
		return Image{}, err
	}
	if img, ok, err := s.otherDigest(name, hex); ok {
		return img, err
	}
	r, err := s.resolve(name)
	if fault.Is(err, fault.NotFound) {
		return Image{}, noDigest(name, hex)
	}
	if err != nil {
		return Image{}, err
	}
	key := r.Name + "/" + hex[:digestDir]
	s.mu.RLock()
	img, ok := s.digest[key]
	s.mu.RUnlock()
	if !ok {
		img, err = load(filepath.Join(s.dir, r.Name, hex[:digestDir]))
		if err == nil && s.leaves(r.Name, img.Digest) {
			return Image{}, leavingError(r.Name)
		}
		if err == nil {
			err = s.keep(img)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return Image{}, noDigest(r.Name, hex)
		}
		if err != nil {
			return Image{}, err
		}
		s.mu.Lock()
		if s.leaving[r.Name] == nil {
			s.digest[key] = img
		}
		s.mu.Unlock()
	}
	if !strings.HasPrefix(strings.TrimPrefix(img.Digest, "sha256:"), hex) {
		return Image{}, noDigest(r.Name, hex)
	}
	return img, nil
}

func noDigest(name, hex string) error {
	return fault.New(fault.NotFound, "there is no image %q with the digest %s here", name, hex).
		WithRemedy("use the directory of images that the sandbox was made with, or make a new sandbox")
}

// Close ends the builds in progress and waits until all their processes have ended. It may be
// called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, b := range s.builds {
		b.cancel()
	}
	s.mu.Unlock()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, f := range s.held {
		_ = f.Close()
		delete(s.held, key)
	}
	return s.others.Close()
}

// private refuses a directory that others could have laid out, or can change: a
// build runs as root in it, and its images are trusted.
func private(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the image directory %s cannot be looked at", dir)
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fault.New(fault.Denied, "the image directory %s belongs to user %d with mode %04o; it has to be the server's own (user %d), and nobody else's to write",
			dir, st.Uid, st.Mode&0o7777, os.Geteuid()).
			WithRemedy("choose another with --images, or remove it")
	}
	return nil
}
