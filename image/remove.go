// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// removedPrefix begins the names of builds that are being removed. The rename to such a name is
// what removes one; a store that opens later finishes what a kill broke off.
const removedPrefix = ".removed-"

// cacheName is the directory of what builds downloaded.
const cacheName = "cache"

// Build is one build of an image on disk.
type Build struct {
	Image
	Current bool // new sandboxes get it
}

// Builds returns what is on disk of the image that a name means, newest first: also builds by
// older recipes, on which sandboxes may still run. One that is being removed is not among them.
// An image of others is one build.
func (s *Store) Builds(name string) ([]Build, error) {
	r, err := s.resolve(name)
	if fault.Is(err, fault.NotFound) {
		img, err := s.other(name, err)
		if err != nil {
			return nil, err
		}
		return []Build{{Image: img, Current: len(img.Other.References) > 0}}, nil
	}
	if err != nil {
		return nil, err
	}
	images, err := scan(filepath.Join(s.dir, r.Name), s.skipped)
	if err != nil {
		return nil, err
	}
	images = slices.DeleteFunc(images, func(img Image) bool { return s.leaves(r.Name, img.Digest) })
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Digest, a.Digest))
	})
	current, err := s.current(r)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	all := make([]Build, 0, len(images))
	for _, img := range images {
		all = append(all, Build{Image: img, Current: err == nil && img.Digest == current.Digest})
	}
	return all, nil
}

// Is reports whether a digest, as FindDigest takes it, names the build; "" names all.
func (b *Build) Is(digest string) (bool, error) {
	if digest == "" {
		return true, nil
	}
	hex, err := digestHex(digest)
	return err == nil && strings.HasPrefix(strings.TrimPrefix(b.Digest, "sha256:"), hex), err
}

// Withdrawal is builds of one image that nobody finds any more, so that they can be removed.
type Withdrawal struct {
	s      *Store
	r      recipe // the zero one: an image of others
	key    string // in Store.leaving
	builds []Image
	whole  bool
	done   chan struct{} // closed by End
}

// Withdraw takes builds of an image, by their digests, out of what is found: FindDigest answers
// fault.Conflict for them, and Ensure waits for the end of the withdrawal. It looks for no users:
// the caller does, afterwards, and whoever begins to use an image looks after that whether it is
// still found. Without digests it is all builds, and what a build that was broken off has left. A
// build of the image that goes on is fault.Conflict, unless cancel ends it. An image of others is withdrawn under all its
// names; its pull or import may go on, and brings it back. End is called once.
func (s *Store) Withdraw(name string, digests []string, cancel bool) (*Withdrawal, error) {
	r, err := s.resolve(name)
	if fault.Is(err, fault.NotFound) {
		img, err := s.other(name, err)
		if err != nil {
			return nil, err
		}
		return s.withdrawOther(img, digests)
	}
	if err != nil {
		return nil, err
	}
	all, err := s.Builds(r.Name)
	if err != nil {
		return nil, err
	}
	w := &Withdrawal{s: s, r: r, key: r.Name, whole: len(digests) == 0, done: make(chan struct{})}
	for _, b := range all {
		if w.whole {
			w.builds = append(w.builds, b.Image)
		}
	}
	for _, digest := range digests {
		hex, err := digestHex(digest)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(b Build) bool { return strings.HasPrefix(strings.TrimPrefix(b.Digest, "sha256:"), hex) })
		if at < 0 {
			return nil, noBuild(r.Name, hex)
		}
		w.builds = append(w.builds, all[at].Image)
	}
	for {
		s.mu.Lock()
		if s.leaving[r.Name] != nil {
			s.mu.Unlock()
			return nil, leavingError(r.Name)
		}
		b := s.builds[r.Name]
		if b == nil {
			break
		}
		s.mu.Unlock()
		if !cancel {
			return nil, fault.New(fault.Conflict, "the image %q is being built", r.Name).
				WithRemedy("wait for the end of the build, which sandpit image ls shows, or end it by force")
		}
		b.cancel()
		<-b.done
	}
	defer s.mu.Unlock()
	if err := s.unread(w.builds); err != nil {
		return nil, err
	}
	s.leaving[r.Name] = w
	for _, img := range w.builds {
		delete(s.digest, r.Name+"/"+dirOf(img))
	}
	delete(s.ready, r.Name)
	return w, nil
}

// Builds returns the builds that are withdrawn.
func (w *Withdrawal) Builds() []Image { return w.builds }

// Remove removes the builds from the disk, and returns how many bytes they took. Each is gone at
// once or stays whole; a kill in between leaves what the next Open removes. One that another
// process on the same directory has found is fault.Conflict, and stays with those after it.
func (w *Withdrawal) Remove() (bytes int64, err error) {
	dir := filepath.Join(w.s.dir, w.r.Name)
	if w.whole {
		if err := w.discard(dir); err != nil {
			return 0, err
		}
	}
	for _, img := range w.builds {
		if img.Other != nil {
			n, err := w.removeOther(img)
			if bytes += n; err != nil {
				return bytes, err
			}
			continue
		}
		trash := filepath.Join(dir, removedPrefix+dirOf(img))
		if err := w.take(img, trash); err != nil {
			return bytes, err
		}
		w.s.log.Info("removed a build of an image", "image", img.Name, "digest", img.Digest, "bytes", img.SizeBytes)
		bytes += img.SizeBytes
		if err := removeAll(trash); err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}

// take gives a build another name, if no other process uses it.
func (w *Withdrawal) take(img Image, trash string) error {
	w.s.letGo(keyOf(img))
	f, err := w.lock(img)
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	path := filepath.Dir(img.Root)
	if err := os.RemoveAll(trash); err != nil { // of a build of the same versions before
		return err
	}
	if err := os.Rename(path, trash); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path), false)
}

// lock locks a build that no other process uses; nil, nil: another process removed it.
func (w *Withdrawal) lock(img Image) (*os.File, error) {
	f, err := hold(filepath.Dir(img.Root), unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fault.Wrap(fault.Conflict, err, "the build %s of the image %q is used by another server on the same directory of images", dirOf(img), img.Name).
			WithRemedy("delete it when that server does not use it, and has ended")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// discard removes what a build that was broken off has left.
func (w *Withdrawal) discard(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, workName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l, err := tryLock(w.s.dir)
	if err != nil {
		return err
	}
	if l == nil {
		return fault.New(fault.Conflict, "another build goes on, perhaps of the image %q by another server", w.r.Name).
			WithRemedy("wait for its end, or name the digest of what is to be deleted")
	}
	defer l.release()
	return discard(filepath.Join(dir, workName))
}

// End has what is left be found again, and builds begin.
func (w *Withdrawal) End() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.leaving, w.key)
	if w.whole {
		delete(w.s.failed, w.r.Name)
		delete(w.s.stale, w.r.Name)
	}
	close(w.done)
	w.s.changed()
}

// leaves reports whether a build of an image is being removed.
func (s *Store) leaves(name, digest string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w := s.leaving[name]
	return w != nil && slices.ContainsFunc(w.builds, func(img Image) bool { return img.Digest == digest })
}

// awaitLeaving waits while builds of an image are being removed.
func (s *Store) awaitLeaving(ctx context.Context, name string) (waited bool, err error) {
	s.mu.RLock()
	w := s.leaving[name]
	s.mu.RUnlock()
	if w == nil {
		return false, nil
	}
	select {
	case <-w.done:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// RemoveCache removes what builds downloaded, and returns how many bytes it took. While one goes on
// it is fault.Conflict. With dry it only counts.
func (s *Store) RemoveCache(dry bool) (bytes int64, err error) {
	dir := filepath.Join(s.dir, cacheName)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if dry {
		bytes, _, err = measure(dir)
		return bytes, err
	}
	l, err := tryLock(s.dir)
	if err != nil {
		return 0, err
	}
	if l == nil {
		return 0, fault.New(fault.Conflict, "an image is being built, which uses what was downloaded").WithRemedy("wait for the end of the build")
	}
	defer l.release()
	if bytes, _, err = measure(dir); err != nil {
		return 0, err
	}
	trash := filepath.Join(s.dir, removedPrefix+cacheName)
	if err := os.RemoveAll(trash); err != nil {
		return 0, err
	}
	if err := os.Rename(dir, trash); err != nil {
		return 0, err
	}
	return bytes, removeAll(trash)
}

// removeRest removes from a directory what a kill left of removals.
func removeRest(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), removedPrefix) {
			if err := removeAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeAll is os.RemoveAll beside another process that removes the same.
func removeAll(path string) error {
	const tries = 3
	var err error
	for range tries {
		if err = os.RemoveAll(path); err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return err
}

// hold opens a directory of a build and locks it: shared is for who uses the build, exclusive for
// who removes it. Kernels end the lock with the process.
func hold(path string, how int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	for {
		err = unix.Flock(fd, how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		// Whoever had it before may have removed it.
		var at, is unix.Stat_t
		if err = unix.Fstat(fd, &is); err == nil {
			err = unix.Lstat(path, &at)
		}
		if err == nil && (at.Ino != is.Ino || at.Dev != is.Dev) {
			err = unix.ENOENT
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// keep notes that this process uses a build, so that no other one removes it. fs.ErrNotExist: one does.
func (s *Store) keep(img Image) error {
	key := keyOf(img)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] != nil {
		return nil
	}
	f, err := hold(filepath.Dir(img.Root), unix.LOCK_SH)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &fs.PathError{Op: "lock", Path: img.Root, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	if s.closed {
		return f.Close() // it is found, and not kept: nobody would let it go
	}
	s.held[key] = f
	return nil
}

func (s *Store) letGo(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.held[key]; f != nil {
		_ = f.Close()
		delete(s.held, key)
	}
}

// dirOf is the name of a build's directory.
func dirOf(img Image) string { return strings.TrimPrefix(img.Digest, "sha256:")[:digestDir] }

func noBuild(name, hex string) error {
	return fault.New(fault.NotFound, "there is no build of the image %q with the digest %s here", name, hex).
		WithRemedy("look which there are: sandpit image inspect %s", name)
}

func leavingError(name string) error {
	err := fault.New(fault.Conflict, "builds of the image %q are being deleted", name)
	err.Retry = time.Second
	return err.WithRemedy("ask again when that is over")
}
