// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"maps"
	"slices"
	"sync"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
)

// digestNote is the annotation of a saved image with the digest that it has here.
const digestNote = "dev.sandpit.image.digest"

// Saving is an image as an OCI archive that is about to be written. End is called once.
type Saving struct {
	*oci.Saving
	Image Image
	End   func()
}

// Save reads an image that is here for an archive of it, see [oci.Save]. It is not withdrawn until End.
func (s *Store) Save(ctx context.Context, name string) (*Saving, error) {
	img, err := s.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	end, err := s.reading(img)
	if err != nil {
		return nil, err
	}
	made, err := oci.Save(ctx, rootfsOf(img))
	if err != nil {
		end()
		return nil, err
	}
	return &Saving{made, img, sync.OnceFunc(end)}, nil
}

func rootfsOf(img Image) oci.Rootfs {
	r := oci.Rootfs{Dir: img.Root, Annotations: map[string]string{digestNote: img.Digest}}
	if img.Other != nil {
		r.Architecture, r.Config, r.Undated = img.Other.Architecture, img.Other.Config, oci.Added()
		if ref, err := oci.ParseReference(img.Name); err == nil && img.Name != img.Digest {
			r.Reference = ref.String()
		}
		return r
	}
	r.Config = oci.Config{User: "1000:1000", WorkingDir: "/workspace"}
	for _, k := range slices.Sorted(maps.Keys(img.Env)) {
		r.Config.Env = append(r.Config.Env, k+"="+img.Env[k])
	}
	r.Reference = "localhost/sandpit/" + img.Name + ":" + dirOf(img)
	return r
}

// reading keeps an image from being withdrawn until end.
func (s *Store) reading(img Image) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leavesNow(img) {
		return nil, leavingError(img.Name)
	}
	s.saving[img.Digest]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.saving[img.Digest]--; s.saving[img.Digest] == 0 {
			delete(s.saving, img.Digest)
		}
	}, nil
}

// leavesNow reports whether an image is being removed. The caller holds mu.
func (s *Store) leavesNow(img Image) bool {
	for _, w := range s.leaving {
		if slices.ContainsFunc(w.builds, func(b Image) bool { return b.Digest == img.Digest }) {
			return true
		}
	}
	return false
}

// unread returns fault.Conflict while one of these is being saved. The caller holds mu.
func (s *Store) unread(builds []Image) error {
	for _, img := range builds {
		if s.saving[img.Digest] > 0 {
			return fault.New(fault.Conflict, "the image %q is being saved", img.Name).WithRemedy("ask again when that is over")
		}
	}
	return nil
}

// Push puts an image that is here into a registry, see [oci.Store.Push]. It is not withdrawn meanwhile.
func (s *Store) Push(ctx context.Context, name, reference string, tell func(sent, total int64)) (oci.Pushed, error) {
	if _, err := oci.ParseReference(reference); err != nil {
		return oci.Pushed{}, err
	}
	made, err := s.Save(ctx, name)
	if err != nil {
		return oci.Pushed{}, err
	}
	defer made.End()
	return s.others.Push(ctx, made.Saving, reference, tell)
}
