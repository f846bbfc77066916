// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"io"
	"regexp"
	"slices"
	"strings"

	"sandpit.dev/image/entry"
	"sandpit.dev/sandbox"
)

// version is what a version looks like that is told.
var version = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~:_-]{0,63}$`)

//go:embed packages.sh
var packagesScript string

// packages looks at what is installed: a hash of each tool's list goes into resolved, and the versions of
// the packages that the job names are returned.
func (w *work) packages(ctx context.Context, resolved map[string]string) (map[string]string, error) {
	text, err := w.ask(ctx, sandbox.UserRoot, "/bin/sh", "-c", packagesScript)
	if err != nil {
		return nil, err
	}
	lists := map[string]map[string]string{entry.Apt: {}, entry.Pip: {}, entry.Npm: {}}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 || lists[f[0]] == nil {
			continue
		}
		if f[0] == entry.Pip {
			f[1] = pipName(f[1])
		}
		lists[f[0]][f[1]] = f[2]
	}
	for tool, list := range lists {
		resolved[tool] = sum(list)
	}
	out := make(map[string]string)
	for _, p := range w.job.Packages {
		name := p.Name
		if p.Tool == entry.Pip {
			name = pipName(name)
		}
		v := lists[p.Tool][name]
		if p.Tool == entry.Apt && v == "" { // the list has the architecture with each name
			for full, at := range lists[p.Tool] {
				if plain, _, _ := strings.Cut(full, ":"); plain == name {
					v = at
				}
			}
		}
		if version.MatchString(v) {
			out[p.Name] = v
		}
	}
	return out, nil
}

// sum is a hash of a list of versions.
func sum(list map[string]string) string {
	lines := make([]string, 0, len(list))
	for name, v := range list {
		lines = append(lines, name+" "+v+"\n")
	}
	slices.Sort(lines)
	h := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(h[:])
}

// pipName is a name in the form in which pip compares them.
func pipName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
}

// emptyLayer writes a layer that changes nothing.
func emptyLayer(to io.Writer) error { return tar.NewWriter(to).Close() }
