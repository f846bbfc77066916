// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/seed"
	"sandpit.dev/sandbox"
)

var _ runtime.Accounter = (*Driver)(nil)

// userID is the number of the sandbox's user, and of its group.
const userID = 1000

// seeds keeps what new disks begin with, by image and account: an image never changes, and one account is asked for often.
type seeds struct {
	mu   sync.Mutex
	have map[seedKey]*seed.Seed // nil: such an account may not suit
}

type seedKey struct {
	root    string
	account sandbox.Account // the default one: the lists alone
}

// Bounds of what is kept: of seeds, and of one in bytes.
const (
	maxSeeds = 64
	maxSeed  = 64 << 10
)

// of returns the seed of a key. The image is somebody's: nothing in it is followed.
func (s *seeds) of(key seedKey) (*seed.Seed, error) {
	s.mu.Lock()
	one, ok := s.have[key]
	s.mu.Unlock()
	if ok || key.account.Check() != nil {
		return one, nil
	}
	image, err := accounts.Root(key.root)
	if err != nil {
		return nil, err
	}
	defer unix.Close(image)
	if a := key.account; a.Default() {
		one, err = seed.Lists(image)
	} else {
		one, err = seed.Account(image, userID, a.Name, a.Home, a.Workdir)
	}
	if err != nil || one != nil && one.Size() > maxSeed {
		return one, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have == nil || len(s.have) >= maxSeeds {
		s.have = make(map[seedKey]*seed.Seed)
	}
	s.have[key] = one
	return one, nil
}

// Suits reports whether an account can surely be made on a new disk over an image.
func (d *Driver) Suits(img runtime.Image, a sandbox.Account) bool {
	if a.Default() {
		return true
	}
	one, err := d.seeds.of(seedKey{img.Root, accountOnly(a)})
	return err == nil && one != nil
}

func accountOnly(a sandbox.Account) sandbox.Account {
	if a.Default() {
		return sandbox.Account{}
	}
	a = a.Full()
	a.As = ""
	return a
}

// seedOf returns what the account of spec takes of a new disk; nil: nothing. A disk that is not new, or that comes from
// somewhere, is the agent's to look at.
func (d *Driver) seedOf(spec runtime.Spec) (*seed.Seed, error) {
	switch {
	case spec.From != "" || spec.Account != nil && spec.Account.Again:
		return nil, nil
	case spec.Account != nil:
		return d.seeds.of(seedKey{spec.Image.Root, accountOnly(spec.Account.Account)})
	case spec.Renames:
		return d.seeds.of(seedKey{root: spec.Image.Root})
	}
	return nil, nil
}

// seeded is a disk with what the account of spec takes of it, so that the agent finds it there. Where that is something
// begin has it made aside, before the steps that need no disk; end waits for it.
func (i *Instance) seeded(spec runtime.Spec, disk diskMaker) (_ diskMaker, begin step, end func()) {
	one, err := i.d.seedOf(spec)
	if err == nil && one == nil {
		return disk, func(context.Context) error { return nil }, func() {}
	}
	var aside diskMaker
	release := func() {}
	begin = func(context.Context) error {
		if err != nil {
			return i.noRoot(err)
		}
		aside, release = makeAside(func() (*layer.Layer, error) {
			l, err := disk()
			if err != nil {
				return nil, err
			}
			if err := writeSeed(l, one); err != nil {
				_ = l.Close()
				return nil, i.noRoot(err)
			}
			return l, nil
		})
		return nil
	}
	return func() (*layer.Layer, error) { return aside() }, begin, func() { release() }
}

func writeSeed(l *layer.Layer, s *seed.Seed) error {
	upper, err := openDir(l.Fd(), "upper")
	if err != nil {
		return err
	}
	defer func() { _ = upper.Close() }()
	return s.Write(int(upper.Fd()))
}
