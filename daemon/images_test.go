// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImagesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	read := func(file string) (Config, error) {
		c := DefaultConfig()
		err := c.ReadFile(write(t, file))
		if err == nil {
			err = c.Check()
		}
		return c, err
	}
	for file, want := range map[string]ImagesConfig{
		"data: /srv/a\n":                          {Dir: "/srv/a/images"},
		"images: /srv/images\n":                   {Dir: "/srv/images"},
		"images: {dir: /srv/images, exact: true}": {Dir: "/srv/images", Exact: true},
		"data: /srv/a\nimages:\n  default: debian-12\n  allowed: [python, \"node*\"]\n": {
			Dir: "/srv/a/images", Default: "debian-12", Allowed: []string{"python", "node*"},
		},
	} {
		if got, err := read(file); err != nil || !cmp.Equal(got.Images, want) {
			t.Errorf("%s: %+v, %v", file, got.Images, err)
		}
	}
	for file, want := range map[string]string{
		"images: {allow: [python]}":                     `no key "allow" in images; did you mean allowed?`,
		"data: /srv/a\nimages:\n  dir: /a\n  dirs: /b":  `line 4: there is no key "dirs" in images`,
		"images: [python]":                              "images is a list",
		"images: {allowed: python}":                     "images.allowed is",
		"images: {allowed: [\"[\"]}":                    "is not a valid pattern",
		"images: {default: \"a\\u0000\"}":               "images.default",
		"images: {exact: perhaps}":                      "images.exact is",
		"images: {allowed: [python], exact: [1, 2, 3]}": "images.exact is a list",
	} {
		if got, err := read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", file, got.Images, err, want)
		}
	}
}
