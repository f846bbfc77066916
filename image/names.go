// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// promise is what a name says is inside: python-3.12 says python 3.12.
type promise struct{ tool, version string }

// meant are the entries that names mean once those are built; until then they mean what has the name
// as an alias.
func meant() map[string]string {
	return map[string]string{
		"debian-12": "base", "ubuntu-24.04": "base", "node-22": "node",
		"mcpgateway/skills-runtime:latest": "skills-runtime",
	}
}

// resolve is resolve with what the images that are there make of a name.
func (s *Store) resolve(name string) (recipe, error) {
	if own := meant()[name]; own != "" {
		if r, ok := s.standsFor(own); ok {
			return r, nil
		}
	}
	return resolve(s.recipes, *s.policy.Load(), name)
}

// standsFor returns the entry that a name means, and reports whether it is built and new sandboxes may
// have it.
func (s *Store) standsFor(own string) (recipe, bool) {
	at := slices.IndexFunc(s.recipes, func(r recipe) bool { return r.Name == own })
	if at < 0 || !s.policy.Load().Allows(s.recipes[at].Entry, "") {
		return recipe{}, false
	}
	_, err := s.Find(context.Background(), own)
	return s.recipes[at], err == nil
}

// rename puts the names of [meant] where they belong in a list.
func (s *Store) rename(all []Status) {
	names := meant()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		own := names[name]
		at := slices.IndexFunc(all, func(st Status) bool { return st.Name == own })
		if at < 0 || all[at].Image.Name == "" || slices.Contains(all[at].Aliases, name) {
			continue
		}
		if _, ok := s.standsFor(own); !ok {
			continue
		}
		for i := range all {
			all[i].Aliases = slices.DeleteFunc(slices.Clone(all[i].Aliases), func(a string) bool { return a == name })
		}
		all[at].Aliases = append(all[at].Aliases, name)
	}
}

// distributions are the names that stand for a whole system. An image has one of them.
func distributions() []string {
	return []string{"debian", "ubuntu", "alpine", "fedora", "centos", "rockylinux", "almalinux", "archlinux", "opensuse"}
}

// languages are the other names whose version people mean by an image's.
func languages() map[string]string {
	return map[string]string{
		"python": "python", "node": "node", "nodejs": "node", "go": "go", "golang": "go", "ruby": "ruby", "rust": "rust",
		"java": "java", "openjdk": "java", "php": "php", "perl": "perl", "bun": "bun", "deno": "deno",
	}
}

// releases are names of releases of distributions, as names and tags have them.
func releases() map[string]promise {
	return map[string]promise{
		"bullseye": {"debian", "11"}, "bookworm": {"debian", "12"}, "trixie": {"debian", "13"},
		"focal": {"ubuntu", "20.04"}, "jammy": {"ubuntu", "22.04"}, "noble": {"ubuntu", "24.04"},
	}
}

var (
	versionOfTag  = regexp.MustCompile(`^v?([0-9]+(?:\.[0-9]+)*)(?:[-_].*)?$`)
	versionOfName = regexp.MustCompile(`^(.+?)[-_]v?([0-9]+(?:\.[0-9]+)*)(?:[-_].*)?$`)
)

// promised returns what a name says is inside. A name without a known tool and a version says nothing.
func promised(name string) (promise, bool) {
	base, _, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], "@")
	repository, tag, _ := strings.Cut(base, ":")
	tool, version := repository, ""
	if m := versionOfTag.FindStringSubmatch(tag); m != nil {
		version = m[1]
	} else if m := versionOfName.FindStringSubmatch(repository); m != nil {
		tool, version = m[1], m[2]
	} else if r, ok := releases()[tag]; ok && r.tool == repository {
		return r, true
	}
	// The last word says what it is: sandbox-python is python.
	tool = tool[strings.LastIndexAny(tool, "-_")+1:]
	if version == "" {
		return promise{}, false
	}
	if slices.Contains(distributions(), tool) {
		return promise{tool, version}, true
	}
	if l, ok := languages()[tool]; ok {
		return promise{l, version}, true
	}
	return promise{}, false
}

// kept reports whether a version is the one that was promised, or one of it: 3.12.4 is one of 3.12.
func (p promise) kept(version string) bool {
	return version == p.version || strings.HasPrefix(version, p.version+".")
}

// Note says in a sentence where a name that was asked for says something else than what is inside
// the image that it got: another version, or an image of somebody else's. It is "" where the name
// is true, where it says nothing of what is inside, and where that is not known.
func Note(asked, name string, versions map[string]string) string {
	if asked == "" || len(versions) == 0 {
		return ""
	}
	if p, ok := promised(asked); ok {
		inside, has := versions[p.tool]
		switch {
		case has && !p.kept(inside):
			return fmt.Sprintf("%s names %s %s, and the image %s has %s %s", shown(asked), p.tool, p.version, name, p.tool, inside)
		case !has && slices.Contains(distributions(), p.tool):
			return fmt.Sprintf("%s names %s %s, and the image %s %s", shown(asked), p.tool, p.version, name, systemOf(versions, p.tool))
		case !has:
			return fmt.Sprintf("%s names %s %s, and the image %s has no %s", shown(asked), p.tool, p.version, name, p.tool)
		}
	}
	if strings.Contains(asked, "/") && asked != name {
		return fmt.Sprintf("%s is the image %s here", shown(asked), name)
	}
	return ""
}

// systemOf says which system is inside instead of another.
func systemOf(versions map[string]string, other string) string {
	for _, d := range distributions() {
		if v := versions[d]; v != "" {
			return "is " + d + " " + v
		}
	}
	return "is not known to be " + other
}
