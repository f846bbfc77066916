// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/image/entry"
)

// Entry is one line of the catalogue.
type Entry struct {
	// Name is the catalogue's own name and the directory's.
	Name string
	// Title says in a line what is inside.
	Title string
	// Aliases are the other spellings that resolve to the entry.
	Aliases []string
	// Base is the entry that it is made of, "" for a whole system of its own; Packages are what it adds
	// to that by name.
	Base     string
	Packages []entry.Package
	// Start is what a sandbox of the image begins with, nil for none. Who makes sandboxes runs it.
	Start []string
	// ByAdmin says that only an administrator has it built: its steps reach package mirrors, and take
	// minutes.
	ByAdmin bool
}

// MaxNameBytes bounds an image's name.
const MaxNameBytes = 255

// maxShownBytes bounds how much of a caller's value a message repeats.
const maxShownBytes = 64

// catalogue is the visible list: an image is one line here and one recipe.
func catalogue() []recipe {
	return []recipe{
		pythonRecipe(),
		baseRecipe(),
	}
}

// names lists the entry's name and its aliases.
func (e Entry) names() []string { return append([]string{e.Name}, e.Aliases...) }

// resolve finds the recipe that a caller's name means. The empty name and
// "default" mean the policy's, or else the first one. The remedy names those that may be had.
func resolve(recipes []recipe, policy Policy, name string) (recipe, error) {
	if err := checkName(name); err != nil {
		return recipe{}, err
	}
	if name == "" || name == defaultName {
		if name = policy.Default; name == "" || name == defaultName {
			return recipes[0], nil
		}
	}
	var known []string
	for _, r := range recipes {
		if slices.Contains(r.names(), name) {
			return r, nil
		}
		if policy.Allows(r.Entry, "") {
			known = append(known, r.names()...)
		}
	}
	return recipe{}, fault.New(fault.NotFound, "there is no image %s", shown(name)).
		WithRemedy("use one of: %s", strings.Join(known, ", "))
}

func checkName(name string) error {
	if len(name) > MaxNameBytes {
		return fault.InvalidField("image", "the name %s has %d bytes, more than %d", shown(name), len(name), MaxNameBytes)
	}
	if !utf8.ValidString(name) {
		return fault.InvalidField("image", "the name %s is not UTF-8", shown(name))
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fault.InvalidField("image", "the name %s has a control character or one that does not print", shown(name))
	}
	return nil
}

// shown quotes a caller's value for a message, shortened at a rune's edge.
func shown(s string) string {
	if len(s) <= maxShownBytes {
		return strconv.Quote(s)
	}
	cut := maxShownBytes
	for cut > maxShownBytes-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

// digestHex returns the hex digits of a digest as a caller writes it: with or
// without "sha256:", whole or the 12 digits that name the directory.
func digestHex(digest string) (string, error) {
	hex := strings.TrimPrefix(digest, "sha256:")
	if (len(hex) != digestDir && len(hex) != 64) || !isHex(hex) {
		return "", fault.InvalidField("digest", "%s is not 12 or 64 lower-case hex digits, with or without \"sha256:\" before them", shown(digest))
	}
	return hex, nil
}
