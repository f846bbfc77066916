// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"net/http"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// zippedMark ends the tag of a file's content in gzip.
const zippedMark = "-gzip"

// tagOf names a file's content: by its version, which is a strong tag. Where none is known, of a sandbox whose agent is of an
// earlier build, a weak one is made of its size and the time of its last change.
func tagOf(f sandbox.FileInfo) string {
	if f.Version != "" {
		return `"` + f.Version + `"`
	}
	return fmt.Sprintf(`W/"%x-%x"`, f.ModTime.UnixNano(), f.Size)
}

// zippedTag names a file's content in gzip.
func zippedTag(tag string) string { return strings.TrimSuffix(tag, `"`) + zippedMark + `"` }

// matches reports whether a header If-None-Match names a tag.
func matches(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimSpace(t); strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/") || t == "*" {
			return true
		}
	}
	return false
}

// never is a version that no file has: weak tags are equal to none.
const never = "-"

// conditionOf reads what the headers If-Match and If-None-Match make a write depend on.
func conditionOf(h http.Header) (c sandbox.FileCondition, err error) {
	match, none := strings.Join(h.Values("If-Match"), ","), strings.TrimSpace(strings.Join(h.Values("If-None-Match"), ","))
	_, conditional := h["If-Match"]
	_, absent := h["If-None-Match"]
	switch {
	case conditional && absent:
		return c, fault.InvalidField("If-None-Match", "stands beside If-Match; a write has one of the two")
	case absent && none != "*":
		return c, fault.InvalidField("If-None-Match", "%q is not *; a write depends on that there is no file, or by If-Match on its version", sandbox.Clip(none, 80))
	case absent:
		return sandbox.FileCondition{Absent: true}, nil
	case !conditional:
		return c, nil
	case strings.TrimSpace(match) == "*":
		return sandbox.FileCondition{Any: true}, nil
	}
	for t := range strings.SplitSeq(match, ",") {
		if t = strings.TrimSpace(t); t == "" {
			continue
		}
		text, weak := strings.CutPrefix(t, "W/")
		if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' || strings.Contains(text[1:len(text)-1], `"`) {
			return c, fault.InvalidField("If-Match", "%q is not a version in quotes", sandbox.Clip(t, 80)).
				WithRemedy(`send what the header Etag of an answer was, its quotes included: "1f0c…"`)
		}
		text = strings.TrimSuffix(text[1:len(text)-1], zippedMark) // the same file
		if weak || len(text) > 100 {
			text = never
		}
		c.Versions = append(c.Versions, text)
	}
	if n := len(c.Versions); n == 0 || n > sandbox.MaxFileVersions {
		return c, fault.InvalidField("If-Match", "has %d versions; it takes 1 to %d, or *", n, sandbox.MaxFileVersions)
	}
	return c, nil
}
