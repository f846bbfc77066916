// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"io"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
)

// othersName is the directory of images that others made, in the directory of images.
const othersName = ".oci"

// Import makes images of an archive of others, see [oci.Store.Import]. Several imports go on at once, and
// beside a build. project is whose they are, see [oci.Bringer].
func (s *Store) Import(ctx context.Context, r io.Reader, as, project string) ([]Status, error) {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return nil, closedError()
	}
	all, err := s.others.As(project).Import(ctx, r, as)
	out := make([]Status, 0, len(all))
	for _, o := range all {
		s.log.Info("imported an image", "image", o.Name(), "digest", o.Digest, "bytes", o.SizeBytes)
		out = append(out, statusOf(o))
	}
	return out, err
}

// Pull brings an image of others from its registry, see [oci.Store.Pull]. List shows how far it is. project is whose it is, see [oci.Bringer].
func (s *Store) Pull(ctx context.Context, reference, project string) (Status, error) {
	o, err := s.others.As(project).Pull(ctx, reference)
	if err != nil {
		return Status{}, err
	}
	img := imageOf(o, nameOf(o, reference))
	return Status{Entry: img.entry(), State: Ready, Image: img, Progress: 1}, nil
}

// other returns an image of others by a reference or a digest. unknown is what the catalogue said of the name.
func (s *Store) other(name string, unknown error) (Image, error) {
	o, err := s.others.Find(name)
	switch {
	case err == nil:
		img := imageOf(o, nameOf(o, name))
		return img, s.kept(img)
	case fault.Is(err, fault.Invalid):
		return Image{}, unknown // it is no reference, so it was meant to be a name of the catalogue
	case fault.Is(err, fault.NotFound):
		f := fault.As(unknown)
		return Image{}, fault.New(fault.NotFound, "%s", f.Message).
			WithRemedy("%s; or bring the image that others made: sandpit image pull %s", f.Remedy, name)
	}
	return Image{}, err
}

// nameOf is the name of an image that was asked for by one of its references, or by its digest.
func nameOf(o oci.Image, asked string) string {
	if ref, err := oci.ParseReference(asked); err == nil && !strings.HasPrefix(asked, "sha256:") {
		return ref.Familiar()
	}
	return o.Digest
}

// otherDigest returns an image of others by its digest, and reports whether there is one. Its name may mean another one by now.
func (s *Store) otherDigest(name, hex string) (Image, bool, error) {
	o, ok := s.others.Known(hex)
	if !ok {
		return Image{}, false, nil
	}
	img := imageOf(o, name)
	return img, true, s.kept(img)
}

func (s *Store) listOthers() []Status {
	var all []Status
	pulled := make(map[string]bool)
	for _, p := range s.others.Pulls() {
		st := Status{Entry: Entry{Name: p.Name, Title: "pulled from its registry"}, State: Building, Stage: "pull", Text: p.Text(), Err: p.Err}
		if done, total := p.Bytes(); total > 0 {
			st.Progress = float64(done) / float64(total)
		}
		for _, l := range p.Layers {
			st.Layers = append(st.Layers, PulledLayer{Digest: l.Digest, Done: l.Done, Size: l.Size, State: layerState(l)})
		}
		if p.Err != nil {
			st.State = Failed
		}
		st.Allowed = s.policy.Load().Allows(st.Entry, "")
		pulled[p.Name] = true
		all = append(all, st)
	}
	for _, st := range s.making.list() {
		st.Allowed = s.policy.Load().Allows(st.Entry, "")
		pulled[st.Name] = true
		all = append(all, st)
	}
	for _, o := range s.others.List() {
		st := statusOf(o)
		st.Allowed = s.policy.Load().Allows(st.Entry, "")
		if pulled[st.Name] {
			st.Name = o.Digest // its name is about to mean another one
		}
		all = append(all, st)
	}
	return all
}

func layerState(l oci.PulledLayer) LayerState {
	switch {
	case l.Ready:
		return LayerReady
	case l.Done == 0:
		return LayerWaiting
	case l.Done < l.Size:
		return LayerPulling
	}
	return LayerUnpacking
}

func statusOf(o oci.Image) Status {
	img := imageOf(o, o.Name())
	return Status{Entry: img.entry(), State: Ready, Image: img, Progress: 1}
}

// entry is the catalogue's line that an image of others would have.
func (i Image) entry() Entry {
	e := Entry{Name: i.Name}
	if i.Other == nil {
		return e
	}
	e.Title = "imported, linux/" + i.Other.Architecture
	if i.Other.Built {
		e.Title = "built of a Dockerfile, linux/" + i.Other.Architecture
	}
	for _, text := range i.Other.References {
		if ref, err := oci.ParseReference(text); err == nil && ref.Familiar() != i.Name {
			e.Aliases = append(e.Aliases, ref.Familiar())
		}
	}
	return e
}

// imageOf is an image of others under a name.
func imageOf(o oci.Image, name string) Image {
	return Image{
		Name: name, Digest: o.Digest, Root: o.Root, SizeBytes: o.SizeBytes, Files: o.Files, Created: o.Created,
		Env: environment(o.Config.Env), Other: &o,
	}
}

// environment is what of an image's variables holds in a sandbox: not those of the account, which is the
// sandbox's.
func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME", "USER", "LOGNAME", "PWD", "HOSTNAME":
			continue
		}
		env[name] = value
	}
	return env
}

// SameReference reports whether two texts are spellings of one reference.
func SameReference(a, b string) bool {
	one, err := oci.ParseReference(a)
	if err != nil {
		return false
	}
	two, err := oci.ParseReference(b)
	return err == nil && one == two
}
