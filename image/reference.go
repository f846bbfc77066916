// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"strings"

	"sandpit.dev/image/oci"
)

// reference returns the reference that a name can only be, as people write it, and not a misspelt name of the catalogue.
func reference(name string) (string, bool) {
	if !strings.ContainsAny(name, "/:") || strings.HasPrefix(name, "sha256:") {
		return "", false
	}
	ref, err := oci.ParseReference(name)
	if err != nil {
		return "", false
	}
	return ref.Familiar(), true
}

// Default returns the reference that the empty name means, where the operator's default is an image of others; "": it is one
// of the catalogue.
func (s *Store) Default() string {
	p := s.policy.Load()
	if ref, ok := reference(p.Default); ok && s.references {
		if _, err := resolve(s.recipes, Policy{}, p.Default); err != nil {
			return ref
		}
	}
	return ""
}

// orDefault returns the name that a name stands for: the default's, where that is an image of others.
func (s *Store) orDefault(name string) string {
	if name == "" || name == defaultName {
		if ref := s.Default(); ref != "" {
			return ref
		}
	}
	return name
}

// defaultName is a name of the default image.
const defaultName = "default"
