// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Archive is where the host has Debian's packages from.
type Archive struct{ uris, signedBy string }

// HostArchive returns that of the release that the host runs.
func HostArchive() (Archive, error) {
	name, err := codename("/etc/os-release")
	if err != nil {
		return Archive{}, err
	}
	return findArchive("/etc/apt", name)
}

// keyring is what Debian's archive is checked with where the host's sources name nothing.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// findArchive looks through the sources in etc, apt's directory, for those of the release
// that the host runs.
func findArchive(etc, codename string) (Archive, error) {
	for _, pattern := range []string{"sources.list.d/*.sources", "sources.list", "sources.list.d/*.list"} {
		files, _ := filepath.Glob(filepath.Join(etc, pattern)) // only a malformed pattern is an error
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			stanzas := paragraphs(string(text))
			if strings.HasSuffix(file, ".list") {
				stanzas = oneLines(string(text))
			}
			for _, s := range stanzas {
				if slices.Contains(strings.Fields(s["types"]), "deb") && slices.Contains(strings.Fields(s["suites"]), codename) &&
					slices.Contains(strings.Fields(s["components"]), "main") && s["enabled"] != "no" && s["uris"] != "" {
					a := Archive{s["uris"], s["signed-by"]}
					if a.signedBy == "" {
						a.signedBy = keyring
					}
					return a, nil
				}
			}
		}
	}
	return Archive{}, errors.New("the host's package sources have none of its own Debian release; this needs Debian")
}

// Source is a file of apt's that names one suite of the archive.
func (a Archive) Source(name string) string {
	return "Types: deb\nURIs: " + a.uris + "\nSuites: " + name + "\nComponents: main\nSigned-By: " + a.signedBy + "\n"
}

// paragraphs reads deb822, as far as it is needed: fields by their names in lower case.
func paragraphs(text string) (all []map[string]string) {
	cur := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text + "\n\n"))
	for lines.Scan() {
		line := lines.Text()
		switch name, value, ok := strings.Cut(line, ":"); {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			if len(cur) > 0 {
				all = append(all, cur)
			}
			cur = map[string]string{}
		case ok && line[0] != ' ' && line[0] != '\t':
			cur[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
	return all
}

// oneLines reads the format of sources.list.
func oneLines(text string) (all []map[string]string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		s := map[string]string{}
		if begin, rest, ok := strings.Cut(line, "["); ok {
			options, end, _ := strings.Cut(rest, "]")
			for _, o := range strings.Fields(options) {
				if value, ok := strings.CutPrefix(o, "signed-by="); ok {
					s["signed-by"] = value
				}
			}
			line = begin + end
		}
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		s["types"], s["uris"], s["suites"], s["components"] = f[0], f[1], f[2], strings.Join(f[3:], " ")
		all = append(all, s)
	}
	return all
}

// codename is the host's release as /etc/os-release names it.
func codename(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
			return strings.Trim(value, `"`), nil
		}
	}
	return "", errors.New("the host does not say which release it is")
}
