// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"path"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
)

// Absolute is a path as the sandbox sees it, where a relative one begins in the directory of its account.
func (c *Call) Absolute(ctx context.Context, ref, p string) string {
	var own sandbox.Account
	if !path.IsAbs(p) {
		if s, err := c.Sandboxes.Get(ctx, c.Caller, ref); err == nil { // else it is shown as most have it
			own = s.Account
		}
	}
	return own.Absolute(p)
}

// Clip is the beginning of a text, for messages.
func Clip(s string) string { return sandbox.Clip(s, MaxShown) }

// PathError adds to an error about a path what is near it.
func (c *Call) PathError(ctx context.Context, ref, p string, err error) error {
	e := fault.As(err)
	if e.Code == fault.Invalid && e.Remedy == "" {
		// Most often a directory was taken for a file, or the other way round.
		told := *e
		if _, _, lerr := c.Files.ListFiles(ctx, c.Caller, ref, p, sandbox.ListFilesOptions{Limit: 1}); lerr == nil {
			return told.WithRemedy("it is a directory: use list_files with {\"path\": %s}", Quote(Clip(p)))
		} else if c.Tool.Name == "list_files" {
			return told.WithRemedy("if it is a file, use read_file with {\"path\": %s}", Quote(Clip(p)))
		}
		return err
	}
	if e.Code == fault.Denied && c.Caller.May(access.SandboxesWrite) {
		return fault.Wrap(fault.Denied, err, "%s (path %s)", e.Message, Quote(Clip(p))).
			WithRemedy("the user sandbox writes below %s; run_command with {\"as_user\": \"root\"} may reach the rest of the system", strings.Join(sandbox.Writable(), ", "))
	}
	if e.Code != fault.NotFound || c.Gone(ctx) {
		return err
	}
	dir, name := path.Split(c.Absolute(ctx, ref, p))
	files, _, lerr := c.Files.ListFiles(ctx, c.Caller, ref, dir, sandbox.ListFilesOptions{})
	if lerr != nil {
		return fault.Wrap(fault.NotFound, err, "there is no %s, and no directory %s either", Quote(Clip(p)), Quote(Clip(dir))).
			WithRemedy("look with list_files what there is; relative paths begin at %s", c.Absolute(ctx, ref, "."))
	}
	near := nearest(name, files)
	out := fault.Wrap(fault.NotFound, err, "there is no %s", Quote(Clip(p)))
	if len(near) == 0 {
		return out.WithRemedy("the directory %s is empty; relative paths begin at %s", Clip(dir), c.Absolute(ctx, ref, "."))
	}
	return out.WithRemedy("the directory %s has %s; list_files shows all", Clip(dir), strings.Join(near, ", "))
}

// nearest returns up to five names, those most like name first.
func nearest(name string, files []sandbox.FileInfo) []string {
	lower := strings.ToLower(name)
	score := func(f sandbox.FileInfo) int {
		n := strings.ToLower(f.Name)
		switch {
		case n == lower:
			return 0
		case spelling.Distance(n, lower) <= 2:
			return spelling.Distance(n, lower)
		case strings.Contains(n, lower) || strings.Contains(lower, n):
			return 4
		case len(n) > 2 && len(lower) > 2 && n[:3] == lower[:3]:
			return 5
		}
		return 9
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b sandbox.FileInfo) int { return score(a) - score(b) })
	var out []string
	for _, f := range files[:min(Few, len(files))] {
		out = append(out, PrintablePath(Clip(f.Name)))
	}
	return out
}
