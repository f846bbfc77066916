// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandpit.dev/internal/aptsource"
)

// aptSources returns the host's own package sources for a Debian suite, its
// updates and its security fixes, as deb822 text, so that a mirror which the
// host is set up for is used. It is empty when the host has none: another
// distribution, or another release.
func aptSources(etc string, suite string) string {
	var stanzas []aptsource.Stanza
	for _, path := range sourceFiles(etc) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // unreadable to apt as well
		}
		if strings.HasSuffix(path, ".list") {
			stanzas = append(stanzas, aptsource.ParseOneLine(string(data))...)
		} else {
			stanzas = append(stanzas, aptsource.ParseDeb822(string(data))...)
		}
	}
	var out strings.Builder
	complete := false
	for _, s := range stanzas {
		if kept, ok := forSuite(s, suite); ok {
			complete = complete || slices.Contains(strings.Fields(kept.Get("Suites")), suite)
			out.WriteString(kept.Text())
			out.WriteString("\n")
		}
	}
	if !complete {
		return ""
	}
	return out.String()
}

func sourceFiles(etc string) []string {
	files := []string{filepath.Join(etc, "sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		// Only a malformed pattern is an error.
		found, _ := filepath.Glob(filepath.Join(etc, "sources.list.d", pattern))
		files = append(files, found...)
	}
	return files
}

// signed removes options that have apt accept unsigned packages: an attacker on the way to a
// mirror must not choose what a build runs as root.
func signed(s aptsource.Stanza) aptsource.Stanza {
	return slices.DeleteFunc(slices.Clone(s), func(f aptsource.Field) bool {
		switch strings.ToLower(f.Name) {
		case "trusted", "allow-insecure", "allow-weak", "allow-downgrade-to-insecure":
			return true
		}
		return false
	})
}

// forSuite reduces the stanza to what a build of suite needs. Third parties use a release's name
// too; their components distinguish them from Debian.
func forSuite(s aptsource.Stanza, suite string) (aptsource.Stanza, bool) {
	if !slices.Contains(strings.Fields(s.Get("Types")), "deb") || strings.EqualFold(s.Get("Enabled"), "no") ||
		!slices.Contains(strings.Fields(s.Get("Components")), "main") {
		return nil, false
	}
	var suites []string
	for _, have := range strings.Fields(s.Get("Suites")) {
		switch have {
		case suite, suite + "-updates", suite + "-security", suite + "/updates":
			suites = append(suites, have)
		}
	}
	var uris []string
	for _, uri := range strings.Fields(s.Get("URIs")) {
		uris = append(uris, reachable(uri)...)
	}
	if len(suites) == 0 || len(uris) == 0 {
		return nil, false
	}
	return signed(s).With("Types", "deb").With("Suites", strings.Join(suites, " ")).
		With("URIs", strings.Join(uris, " ")).With("Components", "main"), true
}

// reachable returns what a uri means inside the new root: a list of mirrors in a
// file (as cloud images have it) is read, and what lies on the host's own disk
// or on a disc is left out.
func reachable(uri string) []string {
	if path, ok := strings.CutPrefix(uri, "mirror+file:"); ok {
		data, err := os.ReadFile("/" + strings.TrimLeft(path, "/"))
		if err != nil {
			return nil
		}
		var uris []string
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
				uris = append(uris, reachable(fields[0])...)
			}
		}
		return uris
	}
	if strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://") {
		return []string{uri}
	}
	return nil
}
