// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/fault"
)

func newCp(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "cp [flags] LOCAL SANDBOX:PATH | cp [flags] SANDBOX:PATH LOCAL",
		Short: "Copy files and directories into a sandbox or out of it",
		Long: `Copy files and directories into a sandbox or out of it, as cp -r would: into a directory that exists,
else to the very name that is given; "DIR/." means what is in DIR. PATH starts at /workspace unless it is
absolute. "-" is standard input or output.

A copy to this machine ends where it would write more than --max-size: a file in a sandbox may claim any size.
A file comes whole or not at all, with its permissions and the time of its last change, as directories that
are made here do. Special files are left out, and so are links on the way into a sandbox, and those on the way
out that may lead out of what is copied: each with a line on standard error, and the exit status is 1 then.
Nothing that a sandbox says of itself is followed on this machine.`,
		Example: `  sandpit cp main.py web:
  sandpit cp src web:/workspace/app
  sandpit cp web:results/. ./results
  sandpit cp --max-size 50G web:dataset .
  tar c . | sandpit cp - web:all.tar`,
		DisableFlagsInUseLine: true,
		Args:                  takes(2, 2),
	}
	user := c.Flags().StringP("user", "u", "", "act inside as sandbox (the default) or root")
	sync := c.Flags().Bool("sync", false, "into a sandbox: go on when each file is on the server's disk, where a power cut does not take it")
	most := flags.Megabytes{MiB: defaultCopyMiB}
	c.Flags().Var(&most, "max-size", "out of a sandbox: write at most this much to this machine, 4 KiB for each file and directory included (default 10G)")
	c.ValidArgsFunction = func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		refs := a.refs(c.Context())
		for i := range refs {
			refs[i] += ":"
		}
		return refs, cobra.ShellCompDirectiveNoSpace
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		from, to := parseEnd(args[0]), parseEnd(args[1])
		if !from.remote() && !to.remote() {
			return exit.Misuse(c, "neither %q nor %q is in a sandbox; write NAME:PATH for a file in the sandbox NAME, or NAME: for its /workspace", args[0], args[1])
		}
		if from.remote() && to.remote() {
			return exit.Misuse(c, "one of %q and %q has to be SANDBOX:PATH, and the other a local file", args[0], args[1])
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		if *sync && !to.remote() {
			return exit.Misuse(c, "--sync is for copies into a sandbox; leave it out")
		}
		if most.Given && to.remote() {
			return exit.Misuse(c, "--max-size is for copies out of a sandbox; leave it out")
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		t := &transfer{a: a, cl: cl, user: *user, sync: *sync, bar: progress.New(a.stderr), most: int64(most.MiB) << 20}
		t.left = t.most
		defer t.bar.Clear()
		if to.remote() {
			t.ref = to.ref
			return interrupt.Ended(ctx, t.result(t.upload(ctx, from.path, to.path)))
		}
		t.ref = from.ref
		return interrupt.Ended(ctx, t.result(t.download(ctx, from.path, to.path)))
	}
	return c
}

// endpoint is one end of a copy.
type endpoint struct {
	ref  string // empty: local
	path string
}

func (e endpoint) remote() bool { return e.ref != "" }

// parseEnd splits SANDBOX:PATH. A local path that has a colon is told apart by
// its beginning: . or /. A key may have colons, and a path may: the split is at
// the one before an absolute path, else at the first.
func parseEnd(arg string) endpoint {
	if arg == "-" || strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") {
		return endpoint{path: arg}
	}
	at := strings.IndexByte(arg, ':')
	if slash := strings.IndexByte(arg, '/'); slash > 0 && arg[slash-1] == ':' {
		at = slash - 1
	} else if slash >= 0 && slash < at {
		at = -1 // a sandbox's name has no slash
	}
	if at <= 0 {
		return endpoint{path: arg}
	}
	e := endpoint{ref: arg[:at], path: arg[at+1:]}
	if e.path == "" {
		e.path = "."
	}
	return e
}

// transfer copies between one sandbox and this machine.
type transfer struct {
	a       *app
	cl      *client.Client
	ref     string
	user    string
	sync    bool // see client.WriteOptions
	bar     *progress.Bar
	total   int64 // bytes so far
	most    int64 // that a download writes
	left    int64 // of most
	skipped bool  // something was left out
}

// leftOut tells of what is not copied.
func (t *transfer) leftOut(name, kind string) {
	t.bar.Clear()
	t.skipped = true
	t.a.warn("left out: %s (%s)", name, kind)
}

// result returns err, or status 1 for a copy in which something was left out, which was said.
func (t *transfer) result(err error) error {
	if err == nil && t.skipped {
		return &exit.Error{Status: exit.StatusFailed}
	}
	return err
}

// isDir reports whether a path inside is a directory, or a link to one.
func (t *transfer) isDir(ctx context.Context, p string) (bool, error) {
	info, err := t.cl.Stat(ctx, t.ref, p, t.user)
	switch {
	case fault.Is(err, fault.NotFound):
		// The sandbox itself may be what is missing.
		if _, gerr := t.cl.Get(ctx, t.ref); gerr != nil {
			return false, gerr
		}
		return false, nil
	case err != nil:
		return false, err
	case info.Type == "symlink":
		_, _, err := t.cl.ListFiles(ctx, t.ref, p, t.user, 1)
		return err == nil, nil // else it is a link to something else
	}
	return info.Type == "dir", nil
}

// contents reports whether a path means what is in a directory, and gives the
// directory.
func contents(p string) (dir string, ok bool) {
	if p == "." || p == ".." || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..") {
		return path.Clean(p), true
	}
	return p, false
}

// local reads what a local path is.
func local(p string) (os.FileInfo, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "%s cannot be copied", p).WithRemedy("name a file or directory that is on this machine")
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fault.New(fault.Invalid, "%s is neither a file nor a directory (%s)", p, info.Mode().Type())
	}
	return info, nil
}

// moved counts bytes and shows them.
func (t *transfer) moved(name string, n, done, size int64) {
	t.total += n
	if !t.bar.Bytes(name, done, size) { // many small ones take long together
		t.bar.Count("copying", t.total)
	}
}
