// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of paths, the kernel's.
const (
	maxPath    = 4095 // bytes
	maxSegment = 255  // bytes
)

// Place returns the path that a request names in its route or in its query. Where it names
// none, that is the workspace if optional, and else an error.
func Place(route string, query *string, optional bool) (string, error) {
	switch {
	case route != "" && query != nil:
		return "", fault.InvalidField("path", "is given in the route and in the query; give it once")
	case route != "":
		if strings.HasPrefix(route, "/") {
			return "", fault.InvalidField("path", "%q is absolute; the path of the route is relative to %s", sandbox.Clip(route, 80), sandbox.Workspace).
				WithRemedy("put an absolute path into the query: ?path=%s", sandbox.Clip(route, 80))
		}
		return CheckPath("path", route)
	case query != nil:
		return CheckPath("path", *query)
	case optional:
		return ".", nil
	}
	return "", fault.InvalidField("path", "is missing").WithRemedy("name it in the route (…/files/main.py) or in the query (?path=/workspace/main.py)")
}

// CheckPath refuses what cannot be a path. A relative one may not lead out of the workspace:
// another place is named by an absolute one. What links on the way lead to is the sandbox's own
// affair and stays inside it.
func CheckPath(field, p string) (string, error) {
	switch {
	case p == "":
		return "", fault.InvalidField(field, "is empty")
	case len(p) > maxPath:
		return "", fault.InvalidField(field, "has %d bytes, more than %d (it starts with %q)", len(p), maxPath, sandbox.Clip(p, 40))
	case strings.IndexByte(p, 0) >= 0:
		return "", fault.InvalidField(field, "%q holds a NUL byte", sandbox.Clip(p, 80))
	case !utf8.ValidString(p):
		return "", fault.InvalidField(field, "%q is not UTF-8", sandbox.Clip(p, 80))
	}
	for seg := range strings.SplitSeq(p, "/") {
		if len(seg) > maxSegment {
			return "", fault.InvalidField(field, "has a name of %d bytes, more than %d (it starts with %q)", len(seg), maxSegment, sandbox.Clip(seg, 40))
		}
	}
	if !path.IsAbs(p) {
		if clean := path.Clean(p); clean == ".." || strings.HasPrefix(clean, "../") {
			return "", fault.InvalidField(field, "%q leads out of %s", sandbox.Clip(p, 80), sandbox.Workspace).
				WithRemedy("name a place elsewhere by its absolute path, in the query: ?path=")
		}
	}
	return p, nil
}

// Mode returns permissions that are written in octal; nil is zero, the default.
func Mode(field string, s *string) (fs.FileMode, error) {
	if s == nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(*s, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return 0, fault.InvalidField(field, "%q is outside 1 to 777 in octal", sandbox.Clip(*s, 40))
	}
	return fs.FileMode(n), nil
}
