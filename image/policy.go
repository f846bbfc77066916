// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"path"
	"strings"

	"sandpit.dev/fault"
)

// Policy is what the operator says about images. Its zero value allows all.
type Policy struct {
	// Default is a name of the image that the empty name means; "": the catalogue's first.
	Default string
	// Allowed are names and patterns, as of [path.Match], of the images that new sandboxes may
	// have. An image with several names is allowed by any of them. Empty: all are.
	Allowed []string
	// Exact refuses names that say something else than what is inside.
	Exact bool
}

// MaxAllowed bounds the entries of a policy's list.
const MaxAllowed = 256

// Check returns fault.Invalid for a list with an entry that no image can match.
func (p Policy) Check() error {
	if len(p.Allowed) > MaxAllowed {
		return fault.InvalidField("images.allowed", "has %d entries, more than %d", len(p.Allowed), MaxAllowed)
	}
	for _, a := range p.Allowed {
		if a == "" {
			return fault.InvalidField("images.allowed", "has an empty entry").WithRemedy("leave the list out to allow all images")
		}
		if err := checkName(a); err != nil {
			return fault.InvalidField("images.allowed", "%s", fault.As(err).Message)
		}
		if _, err := path.Match(a, ""); err != nil {
			return fault.InvalidField("images.allowed", "%s is not a valid pattern: a bracket or a backslash is not finished", shown(a))
		}
	}
	if p.Default != "" {
		if err := checkName(p.Default); err != nil {
			return fault.InvalidField("images.default", "%s", fault.As(err).Message)
		}
	}
	return nil
}

// Allows reports whether new sandboxes may have the image of an entry, which was asked for by a
// name ("": by none).
func (p Policy) Allows(e Entry, asked string) bool {
	if len(p.Allowed) == 0 {
		return true
	}
	names := e.names()
	if asked != "" {
		names = append(names, asked)
	}
	for _, a := range p.Allowed {
		for _, n := range names {
			if ok, err := path.Match(a, n); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// Admit returns fault.Denied for an image that new sandboxes may not have.
func (p Policy) Admit(e Entry, asked string) error {
	if p.Allows(e, asked) {
		return nil
	}
	if asked == "" {
		asked = e.Name
	}
	return fault.New(fault.Denied, "the image %s is not one that this server's operator allows", shown(asked)).
		WithRemedy("use one of: %s", strings.Join(p.Allowed, ", "))
}

// Fit returns fault.NotFound where a name says something else than what is inside img, and the
// policy or exact asks for what the name says.
func (p Policy) Fit(asked string, img Image, exact bool) error {
	if !exact && !p.Exact {
		return nil
	}
	note := Note(asked, img.Name, img.Versions)
	if note == "" {
		return nil
	}
	err := fault.New(fault.NotFound, "there is no image that is what its name says: %s", note)
	if p.Exact {
		return err.WithRemedy("ask for %s; the operator has names refused that say something else (images.exact)", img.Name)
	}
	return err.WithRemedy("ask for %s, or leave image_exact out", img.Name)
}
