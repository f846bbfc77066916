// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
)

// Commit is an image that was made of another one, outside of the catalogue.
type Commit struct {
	Name string // a reference, as app:1.4; "": its digest is its name
	Base Image
	// Layer writes what was changed of the base, as an archive in the form of an OCI layer; nil: nothing was.
	// Content is what decides it.
	Layer   func(ctx context.Context, w io.Writer) error
	Content string
	Config  oci.Config
	Project string // whose it is, see [oci.Bringer]; "": the server's
}

// keptOut is what an image of a Dockerfile has as its base: the file systems of a kernel, what is of one run,
// and what names a machine.
func keptOut() []string {
	return []string{"run", "dev", "proc", "sys", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/machine-id", "var/lib/dbus/machine-id"}
}

// Commit makes an image and names it; one of the same base, content and config that is here is named anew. It
// is kept with the images of others. If it fails nothing is left.
func (s *Store) Commit(ctx context.Context, c Commit) (Status, error) {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return Status{}, closedError()
	}
	o, err := s.others.As(c.Project).Commit(ctx, oci.Commit{
		Name: c.Name, Base: c.Base.Digest, Content: c.Content, Config: c.Config,
		Fill: func(ctx context.Context, root string) error {
			if err := LinkTree(ctx, c.Base.Root, root); err != nil {
				return err
			}
			if c.Layer == nil {
				return nil
			}
			return applyFrom(ctx, c.Base.Root, root, keptOut(), c.Layer)
		},
	})
	if err != nil {
		return Status{}, err
	}
	s.log.Info("made an image", "image", o.Name(), "digest", o.Digest, "base", c.Base.Digest, "bytes", o.SizeBytes)
	name := o.Digest
	if c.Name != "" {
		name = nameOf(o, c.Name)
	}
	img := imageOf(o, name)
	return Status{Entry: img.entry(), State: Ready, Image: img, Progress: 1}, nil
}

// scratch is the name of the image without a file, in Dockerfiles and here.
const scratch = "scratch"

// Scratch returns the image without a file of its own, and makes it if it is missing.
func (s *Store) Scratch(ctx context.Context) (Image, error) {
	if o, err := s.others.Find(scratch); !fault.Is(err, fault.NotFound) {
		return imageOf(o, scratch), err
	}
	o, err := s.others.Commit(ctx, oci.Commit{Name: scratch, Content: "empty", Fill: func(context.Context, string) error { return nil }})
	if err != nil {
		return Image{}, err
	}
	return imageOf(o, scratch), nil
}

// Spool returns a file without a name on the disk of images.
func (s *Store) Spool() (*os.File, error) { return s.others.Spool() }

// Room returns why the disk of images takes nothing more, fault.Full, or nil.
func (s *Store) Room() error { return s.others.Room() }

// Config returns what the image says of running it: its maker's, or of the catalogue's its variables.
func (i Image) Config() oci.Config {
	if i.Other != nil {
		return i.Other.Config
	}
	var c oci.Config
	for _, name := range slices.Sorted(maps.Keys(i.Env)) {
		c.Env = append(c.Env, fmt.Sprintf("%s=%s", name, i.Env[name]))
	}
	return c
}

// making is the builds of Dockerfiles that go on. Its zero value works.
type making struct {
	mu  sync.Mutex
	all map[string]*Status // by name
}

// Making has List show a build of a Dockerfile under a name, until done is called. It is fault.Conflict where one of
// that name goes on, and fault.Invalid for a name of the catalogue.
func (s *Store) Making(name string) (report func(stage, text string, progress float64), done func(), err error) {
	all, done, err := s.show(name, "built of a Dockerfile")
	if err != nil {
		return nil, nil, err
	}
	return func(stage, text string, progress float64) { all(stage, text, progress, nil) }, done, nil
}

// Fetching is Making for an image that is fetched from elsewhere.
func (s *Store) Fetching(name string) (report func(stage, text string, progress float64, layers []PulledLayer), done func(), err error) {
	return s.show(name, "pulled by an Engine")
}

// show has List show what is being made under a name, until done is called.
func (s *Store) show(name, title string) (report func(stage, text string, progress float64, layers []PulledLayer), done func(), err error) {
	if r, err := resolve(s.recipes, *s.policy.Load(), name); err == nil {
		return nil, nil, fault.InvalidField("name", "%s means the image %s of the catalogue, which would go before the one that is built", shown(name), r.Name).WithRemedy("choose another name")
	}
	ref, err := oci.ParseReference(name)
	if err != nil {
		return nil, nil, err
	}
	name = ref.Familiar()
	m := &s.making
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[name] != nil {
		return nil, nil, fault.New(fault.Conflict, "the image %s is being built or pulled by somebody else", shown(name)).WithRemedy("wait for its end, or choose another name")
	}
	if m.all == nil {
		m.all = make(map[string]*Status)
	}
	st := &Status{Entry: Entry{Name: name, Title: title}, State: Building}
	m.all[name] = st
	report = func(stage, text string, progress float64, layers []PulledLayer) {
		m.mu.Lock()
		defer m.mu.Unlock()
		st.Stage, st.Text, st.Progress, st.Layers = stage, text, max(st.Progress, progress), layers
	}
	done = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.all, name)
	}
	return report, done, nil
}

func (m *making) list() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(m.all)) {
		all = append(all, *m.all[name])
	}
	return all
}
