// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// aptSources returns the host's own package sources for a Debian suite, its
// updates and its security fixes, as deb822 text, so that a mirror which the
// host is set up for is used. It is empty when the host has none: another
// distribution, or another release.
func aptSources(etc string, suite string) string {
	var stanzas []stanza
	for _, path := range sourceFiles(etc) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // unreadable to apt as well
		}
		if strings.HasSuffix(path, ".list") {
			stanzas = append(stanzas, parseOneLine(string(data))...)
		} else {
			stanzas = append(stanzas, parseDeb822(string(data))...)
		}
	}
	var out strings.Builder
	complete := false
	for _, s := range stanzas {
		if kept, ok := s.forSuite(suite); ok {
			complete = complete || slices.Contains(strings.Fields(kept.get("Suites")), suite)
			out.WriteString(kept.text())
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

// stanza is one paragraph of a deb822 file: fields in their order.
type stanza []field

type field struct{ name, value string }

func (s stanza) get(name string) string {
	for _, f := range s {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

func (s stanza) with(name, value string) stanza {
	out := slices.Clone(s)
	for i := range out {
		if strings.EqualFold(out[i].name, name) {
			out[i].value = value
			return out
		}
	}
	return append(out, field{name, value})
}

// signed removes options that have apt accept unsigned packages: an attacker on the way to a
// mirror must not choose what a build runs as root.
func (s stanza) signed() stanza {
	return slices.DeleteFunc(slices.Clone(s), func(f field) bool {
		switch strings.ToLower(f.name) {
		case "trusted", "allow-insecure", "allow-weak", "allow-downgrade-to-insecure":
			return true
		}
		return false
	})
}

func (s stanza) text() string {
	var b strings.Builder
	for _, f := range s {
		b.WriteString(f.name + ":")
		for i, line := range strings.Split(f.value, "\n") {
			if i > 0 {
				b.WriteString("\n")
			}
			b.WriteString(" " + strings.TrimSpace(line))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// forSuite reduces the stanza to what a build of suite needs. Third parties use a release's name
// too; their components distinguish them from Debian.
func (s stanza) forSuite(suite string) (stanza, bool) {
	if !slices.Contains(strings.Fields(s.get("Types")), "deb") || strings.EqualFold(s.get("Enabled"), "no") ||
		!slices.Contains(strings.Fields(s.get("Components")), "main") {
		return nil, false
	}
	var suites []string
	for _, have := range strings.Fields(s.get("Suites")) {
		switch have {
		case suite, suite + "-updates", suite + "-security", suite + "/updates":
			suites = append(suites, have)
		}
	}
	var uris []string
	for _, uri := range strings.Fields(s.get("URIs")) {
		uris = append(uris, reachable(uri)...)
	}
	if len(suites) == 0 || len(uris) == 0 {
		return nil, false
	}
	return s.signed().with("Types", "deb").with("Suites", strings.Join(suites, " ")).
		with("URIs", strings.Join(uris, " ")).with("Components", "main"), true
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

func parseDeb822(text string) []stanza {
	var all []stanza
	var cur stanza
	end := func() {
		if len(cur) > 0 {
			all = append(all, cur)
		}
		cur = nil
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			end()
		case line[0] == ' ' || line[0] == '\t':
			if len(cur) > 0 {
				cur[len(cur)-1].value += "\n" + strings.TrimSpace(line)
			}
		default:
			if name, value, ok := strings.Cut(line, ":"); ok {
				cur = append(cur, field{strings.TrimSpace(name), strings.TrimSpace(value)})
			}
		}
	}
	end()
	return all
}

// oneLineOptions are the options of the old format by their deb822 names.
var oneLineOptions = map[string]string{
	"arch": "Architectures", "signed-by": "Signed-By",
	"check-valid-until": "Check-Valid-Until", "check-date": "Check-Date",
}

func parseOneLine(text string) []stanza {
	var all []stanza
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		if kind != "deb" {
			continue
		}
		s := stanza{{"Types", "deb"}}
		var options []field
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			opts, after, ok := strings.Cut(inner, "]")
			if !ok {
				continue
			}
			for _, opt := range strings.Fields(opts) {
				key, value, _ := strings.Cut(opt, "=")
				if name, known := oneLineOptions[strings.ToLower(key)]; known {
					options = append(options, field{name, strings.Trim(strings.ReplaceAll(value, ",", " "), `"`)})
				}
			}
			rest = after
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 {
			continue
		}
		s = append(s, field{"URIs", fields[0]}, field{"Suites", fields[1]}, field{"Components", strings.Join(fields[2:], " ")})
		all = append(all, append(s, options...))
	}
	return all
}
