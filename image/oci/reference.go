// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandpit.dev/fault"
)

// Reference names an image in a registry, as Docker's tools write it. Its zero value names nothing.
type Reference struct {
	Registry   string // host, maybe with a port: docker.io
	Repository string // library/debian
	Tag        string // latest; "" where only the digest counts
	Digest     string // sha256:…; ""
}

// The registry and the folder of names that have none.
const (
	defaultRegistry = "docker.io"
	defaultFolder   = "library/"
	defaultTag      = "latest"
)

// maxReference bounds a reference, in bytes, as registries do.
const maxReference = 255

var (
	hostForm = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?$`)
	pathForm = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagForm  = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
)

// ParseReference returns the reference that text is a spelling of: debian:12-slim is that of
// docker.io/library/debian:12-slim. A text that cannot be one is fault.Invalid.
func ParseReference(text string) (Reference, error) {
	bad := func(why string) (Reference, error) {
		return Reference{}, fault.InvalidField("reference", "%s is not a valid reference to an image: %s", shown(text), why).
			WithRemedy("write it as debian:12-slim, ghcr.io/owner/name:tag or name@sha256:…")
	}
	if text == "" || len(text) > maxReference {
		return bad("it has " + strconv.Itoa(len(text)) + " bytes, and can have 1 to " + strconv.Itoa(maxReference))
	}
	var r Reference
	rest, digest, has := strings.Cut(text, "@")
	if has {
		if r.Digest = digest; !isDigest(digest) {
			return bad("what follows @ is not sha256: and 64 lower-case hex digits")
		}
	}
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		if r.Tag = rest[i+1:]; !tagForm.MatchString(r.Tag) {
			return bad("its tag may have letters, digits, _ . and -, at most 128")
		}
		rest = rest[:i]
	}
	r.Registry, r.Repository = defaultRegistry, rest
	if first, more, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:[") || strings.EqualFold(first, "localhost")) {
		r.Registry, r.Repository = strings.ToLower(first), more
	}
	if r.Registry == "index.docker.io" || r.Registry == "registry-1.docker.io" {
		r.Registry = defaultRegistry
	}
	if !hostForm.MatchString(r.Registry) {
		return bad("its registry is not a host, with or without a port")
	}
	if r.Registry == defaultRegistry && !strings.Contains(r.Repository, "/") {
		r.Repository = defaultFolder + r.Repository
	}
	if !pathForm.MatchString(r.Repository) {
		return bad("its name may have lower-case letters and digits, with single . _ - and / between them")
	}
	if r.Tag == "" && r.Digest == "" {
		r.Tag = defaultTag
	}
	return r, nil
}

// String returns the whole reference, with its registry.
func (r Reference) String() string {
	s := r.Registry + "/" + r.Repository
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// Familiar returns the reference as people write it: without Docker's registry and its folder.
func (r Reference) Familiar() string {
	return strings.TrimPrefix(strings.TrimPrefix(r.String(), defaultRegistry+"/"), defaultFolder)
}

const digestPrefix = "sha256:"

// isDigest reports whether s is a digest as this package takes them.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, digestPrefix)
	return ok && len(hex) == 64 && isHex(hex)
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}

// maxShown bounds how much of somebody's text a message repeats.
const maxShown = 96

// shown quotes text of a caller's or an archive's for a message.
func shown(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	cut := maxShown
	for cut > maxShown-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
