// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What the words of an entry look like. None of them can begin with a hyphen, which would make it an
// option, or has a character that means something to a shell.
var (
	entryName = regexp.MustCompile(`^[a-z][a-z0-9.-]{0,62}$`)
	alias     = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._/:-]{0,254}$`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	host      = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

	aptPackage = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]+)(=[0-9A-Za-z][0-9A-Za-z.+:~-]*)?$`)
	pipPackage = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9][A-Za-z0-9._,-]*\])?((?:==|>=|<=|~=|!=|<|>)[0-9A-Za-z][0-9A-Za-z.*+!_-]*(?:,(?:==|>=|<=|~=|!=|<|>)[0-9A-Za-z][0-9A-Za-z.*+!_-]*)*)?$`)
	npmPackage = regexp.MustCompile(`^((?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*)(@[\^~]?[0-9A-Za-z][0-9A-Za-z.+_-]*)?$`)
)

// tool is a list of packages: what it may name, which preset it needs, and what installs it.
type tool struct {
	key, preset string
	pattern     *regexp.Regexp
	example     string
	install     func(packages []string) [][]string
}

func tools() []tool {
	return []tool{
		{Apt, "debian", aptPackage, "ffmpeg or ffmpeg=7:5.1.6-0+deb12u1", func(p []string) [][]string {
			return [][]string{
				{"apt-get", "-q", "update"},
				append([]string{"apt-get", "-q", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", "install", "--"}, p...),
				{"apt-get", "clean"},
			}
		}},
		{Pip, "python", pipPackage, `pandas, pandas==2.2.3 or "markitdown[pptx]"`, func(p []string) [][]string {
			return [][]string{append([]string{"python3", "-m", "pip", "install", "--upgrade", "--no-cache-dir", "--no-input", "--progress-bar", "off", "--root-user-action", "ignore", "--"}, p...)}
		}},
		{Npm, "node", npmPackage, "typescript or @types/node@22", func(p []string) [][]string {
			return [][]string{append([]string{"npm", "install", "--global", "--no-fund", "--no-audit", "--"}, p...)}
		}},
	}
}

// packages makes a step of each list.
func (p *parser) packages(f map[string]*yaml.Node, e *Entry) error {
	for _, t := range tools() {
		list, err := p.list(f[t.key], t.key, func(s string) string {
			if !t.pattern.MatchString(s) {
				return "is not a valid package for " + t.key + ": write " + t.example
			}
			return ""
		})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		for _, s := range list {
			e.Packages = append(e.Packages, Package{Tool: t.key, Name: t.pattern.FindStringSubmatch(s)[1]})
		}
		if !slices.Contains(e.Presets, t.preset) {
			e.Presets = append(e.Presets, t.preset)
		}
		e.Steps = append(e.Steps, Step{Title: t.key + ": " + line(strings.Join(list, " ")), Commands: t.install(list), User: root, Timeout: maxTime})
	}
	return nil
}

// Presets returns the presets by which the package tools are reached, sorted.
func Presets() []string {
	var all []string
	for _, t := range tools() {
		all = append(all, t.preset)
	}
	slices.Sort(all)
	return all
}
