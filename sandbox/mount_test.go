// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestCheckMounts(t *testing.T) {
	id := sandbox.NewID()
	at := func(paths ...string) []sandbox.Mount {
		var all []sandbox.Mount
		for _, p := range paths {
			all = append(all, sandbox.Mount{Volume: id, Path: p})
		}
		return all
	}
	sub := func(s string) []sandbox.Mount { return []sandbox.Mount{{Volume: id, Path: "/v", Sub: s}} }
	for what, good := range map[string][]sandbox.Mount{
		"none":                         nil,
		"the workspace":                at("/workspace"),
		"beside each other":            at("/a", "/ab", "/b/c", "/b/d"),
		"below what holds programs":    at("/usr/local/share", "/etc/app"),
		"not the kernel's, but nearly": at("/process", "/system", "/devices"),
		"a part":                       sub("a/b.c/..d"),
		"as many as there may be":      at(paths(sandbox.MaxMounts)...),
	} {
		if err := sandbox.CheckMounts(good); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, bad := range map[string]struct {
		mounts []sandbox.Mount
		field  string
	}{
		"too many":                {at(paths(sandbox.MaxMounts + 1)...), "mounts"},
		"no id":                   {[]sandbox.Mount{{Volume: "../x", Path: "/v"}}, "mounts[0].volume"},
		"no path":                 {at(""), "mounts[0].path"},
		"a relative path":         {at("a"), "mounts[0].path"},
		"the root":                {at("/a", "/"), "mounts[1].path"},
		"a path that goes up":     {at("/a/../b"), "mounts[0].path"},
		"a slash at the end":      {at("/a/"), "mounts[0].path"},
		"a double slash":          {at("//a"), "mounts[0].path"},
		"a NUL":                   {at("/a\x00"), "mounts[0].path"},
		"no text":                 {at("/\xff"), "mounts[0].path"},
		"a long path":             {at("/" + strings.Repeat("a", 1024)), "mounts[0].path"},
		"the kernel's":            {at("/proc"), "mounts[0].path"},
		"below the kernel's":      {at("/dev/shm"), "mounts[0].path"},
		"what holds programs":     {at("/usr"), "mounts[0].path"},
		"the same twice":          {at("/a", "/b", "/a"), "mounts[2].path"},
		"one in another":          {at("/a", "/a/b"), "mounts[1].path"},
		"one around another":      {at("/a/b", "/a"), "mounts[1].path"},
		"an absolute part":        {sub("/a"), "mounts[0].sub"},
		"a part that goes up":     {sub("a/../../b"), "mounts[0].sub"},
		"a part that is the dot":  {sub("."), "mounts[0].sub"},
		"a part that has a NUL":   {sub("a\x00"), "mounts[0].sub"},
		"a part that is too long": {sub(strings.Repeat("a", 1025)), "mounts[0].sub"},
	} {
		err := sandbox.CheckMounts(bad.mounts)
		if fault.Of(err) != fault.Invalid || !slices.ContainsFunc(fault.As(err).Fields, func(f fault.Field) bool { return f.Name == bad.field }) {
			t.Errorf("%s: got %v, want invalid about %s", what, err, bad.field)
		}
	}
}

// paths returns n that are beside each other.
func paths(n int) []string {
	var all []string
	for i := range n {
		all = append(all, "/v"+strings.Repeat("x", i))
	}
	return all
}
