// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"slices"
	"strings"

	"sandpit.dev/internal/aptsource"
)

// apt returns the hosts that apt fetches from on m. Where m is the host of an image, these are the
// sources of the image's release alone: a host of another distribution has others.
func apt(m Machine, image *Machine) []string {
	release := ""
	if image != nil {
		if release = releaseOf(*image); release == "" {
			return nil
		}
	}
	left := maxSettings // of all files together
	read := func(name string) string {
		text := m.read(name, int64(left))
		left -= len(text)
		return text
	}
	stanzas := aptsource.ParseOneLine(read("etc/apt/sources.list"))
	const dir = "etc/apt/sources.list.d"
	for _, name := range m.list(dir) {
		switch {
		case strings.HasSuffix(name, ".list"):
			stanzas = append(stanzas, aptsource.ParseOneLine(read(dir+"/"+name))...)
		case strings.HasSuffix(name, ".sources"):
			stanzas = append(stanzas, aptsource.ParseDeb822(read(dir+"/"+name))...)
		}
	}
	var out []string
	for _, s := range stanzas {
		if !slices.Contains(strings.Fields(s.Get("Types")), "deb") || strings.EqualFold(s.Get("Enabled"), "no") || release != "" && !of(s, release) {
			continue
		}
		for _, uri := range strings.Fields(s.Get("URIs")) {
			list, ok := strings.CutPrefix(uri, "mirror+file:")
			if !ok {
				out = append(out, hosts(uri)...)
				continue
			}
			for line := range strings.Lines(read(strings.TrimLeft(list, "/"))) {
				if f := strings.Fields(line); len(f) > 0 {
					out = append(out, hosts(f[0])...)
				}
			}
		}
	}
	return out
}

// of reports whether a source is of a release itself: third parties use its name with components of
// their own.
func of(s aptsource.Stanza, release string) bool {
	return slices.Contains(strings.Fields(s.Get("Components")), "main") &&
		slices.ContainsFunc(strings.Fields(s.Get("Suites")), func(suite string) bool {
			return slices.Contains([]string{release, release + "-updates", release + "-security", release + "/updates"}, suite)
		})
}

// releaseOf returns the name of a machine's release, such as bookworm; "" if it has none.
func releaseOf(m Machine) string {
	for line := range strings.Lines(m.read("etc/os-release", maxSettings)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}
