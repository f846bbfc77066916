// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"context"
	"path"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/cmd/sandpit/internal/transfer"
	"sandpit.dev/fault"
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "cp [flags] SOURCE... TARGET",
		Short: "Copy files and directories into a sandbox, out of it, or from one to another",
		Long: `Copy files and directories into a sandbox, out of it, or from one sandbox to another, as cp -a would: into a
directory that exists, which several sources need, else to the very name that is given; "DIR/." means what is
in DIR. SOURCE and TARGET are local paths or SANDBOX:PATH, where PATH starts at /workspace unless it is absolute.
"-" is standard input or output: the bytes of a file, or a tar archive of a directory.

All goes in one stream, with links as links, hard links, permissions, times and any names; owners are those who
copy. A link that is named itself is followed, and with -L those below, too. What has a file's name is replaced,
and not followed. A file comes whole or not at all; a copy that is killed may leave one file .sandpit-* here,
on Linux only where it was about to replace a file.

A copy to this machine ends where it would write more than --max-size: a file in a sandbox may claim any size.
Special files are left out, and so are links on the way out that may lead out of what is copied: each with a
line on standard error, and the exit status is 1 then. Nothing that a sandbox says of itself is followed here.`,
		Example: `  sandpit cp main.py web:
  sandpit cp src tests web:/workspace/app/
  sandpit cp --exclude node_modules --exclude 'build/**' . web:app
  sandpit cp web:results/. ./results
  sandpit cp --max-size 50G web:dataset .
  sandpit cp web:model other:
  sandpit cp --if-version "$VERSION" main.py web:main.py
  sandpit cp web:src - | tar t
  tar c . | sandpit cp - web:`,
		DisableFlagsInUseLine: true,
		Args:                  app.Takes(2, -1),
	}
	user := c.Flags().StringP("user", "u", "", "act as an account of the sandbox, a name or a number (default its own user)")
	sync := c.Flags().Bool("sync", false, "into a sandbox: go on when each file is on the server's disk, where a power cut does not take it")
	verbose := c.Flags().BoolP("verbose", "v", false, "into a sandbox: print what became of each file")
	most := flags.Megabytes{MiB: defaultCopyMiB}
	c.Flags().Var(&most, "max-size", "out of a sandbox: write at most this much to this machine, 4 KiB for each file and directory included (default 10G)")
	follow := c.Flags().BoolP("follow-link", "L", false, "copy what links lead to, in their place")
	exclude := c.Flags().StringArray("exclude", nil, "leave alone what has such a name, or such a path below the source (*.log, build/**); may be given again")
	c.Flags().BoolP("archive", "a", false, "keep links, permissions and times, which it does without it, too")
	c.Flags().BoolP("recursive", "r", false, "copy directories with all in them, which it does without it, too")
	version := c.Flags().String("if-version", "", "one file into a sandbox: replace it if it has this version still, which \"sandpit file stat\" shows")
	absent := c.Flags().Bool("if-absent", false, "one file into a sandbox: make it if there is none")
	c.MarkFlagsMutuallyExclusive("if-version", "if-absent")
	c.ValidArgsFunction = func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		refs := a.Refs(c.Context())
		for i := range refs {
			refs[i] += ":"
		}
		return refs, cobra.ShellCompDirectiveNoSpace
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		from, to, err := parseEnds(c, args)
		if err != nil {
			return err
		}
		if *sync && !to.remote() {
			return exit.Misuse(c, "--sync is for copies into a sandbox; leave it out")
		}
		if *verbose && !to.remote() {
			return exit.Misuse(c, "--verbose is for copies into a sandbox; leave it out")
		}
		if most.Given && to.remote() {
			return exit.Misuse(c, "--max-size is for copies to this machine; leave it out")
		}
		conditional := *version != "" || *absent
		if conditional && (!to.remote() || len(from) > 1 || from[0].remote()) {
			return exit.Misuse(c, "--if-version and --if-absent are for a copy of one file of this machine, or of standard input, into a sandbox")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		t := newCopier(a, cl, *user, int64(most.MiB)<<20)
		t.sync, t.verbose, t.copy.Follow, t.copy.Exclude = *sync, *verbose, *follow, *exclude
		defer t.copy.Bar.Clear()
		if conditional {
			err = t.replace(ctx, from[0], to, client.WriteOptions{User: *user, Sync: *sync, IfVersion: *version, IfAbsent: *absent})
		} else if to.remote() {
			err = t.upload(ctx, from, to)
		} else {
			err = t.download(ctx, from, to.path)
		}
		return interrupt.Ended(ctx, t.result(err))
	}
	return c
}

// parseEnds reads the sources and the target.
func parseEnds(c *cobra.Command, args []string) (from []endpoint, to endpoint, err error) {
	to = parseEnd(args[len(args)-1])
	for _, arg := range args[:len(args)-1] {
		e := parseEnd(arg)
		switch {
		case e.path == "":
			return nil, to, exit.Misuse(c, "the source %q is empty", arg)
		case !e.remote() && !to.remote() && len(args) == 2:
			return nil, to, exit.Misuse(c, "neither %q nor %q is in a sandbox; write NAME:PATH for a file in the sandbox NAME, or NAME: for its /workspace", arg, args[1])
		case !e.remote() && !to.remote():
			return nil, to, exit.Misuse(c, "%q is not in a sandbox, and neither is the target %q; write NAME:PATH for a file in the sandbox NAME", arg, args[len(args)-1])
		case len(args) > 2 && (!e.remote() && e.path == "-" || !to.remote() && to.path == "-"):
			return nil, to, exit.Misuse(c, "\"-\" goes with one source and one target")
		}
		from = append(from, e)
	}
	if to.path == "" {
		return nil, to, exit.Misuse(c, "the target is empty")
	}
	return from, to, nil
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

// copier copies between sandboxes and this machine.
type copier struct {
	a       *app.App
	cl      *client.Client
	user    string
	sync    bool // see client.WriteOptions
	verbose bool // what becomes of each file is printed
	copy    *transfer.Copy
	left    int64 // how many were left out
}

// newCopier returns a copier that acts inside as a user, and writes at most most bytes to this machine.
func newCopier(a *app.App, cl *client.Client, user string, most int64) *copier {
	t := &copier{a: a, cl: cl, user: user}
	t.copy = &transfer.Copy{Most: most, Bar: progress.New(a.Stderr), Left: t.leftOut}
	return t
}

// maxTold bounds the entries that are printed as left out.
const maxTold = 100

// leftOut prints an entry that is not copied.
func (t *copier) leftOut(name, why string) {
	if t.left++; t.left <= maxTold {
		t.copy.Bar.Clear()
		t.a.Warn("left out: %s (%s)", name, why)
	}
}

// leftInside prints what a sandbox left out: the first entries, and the number of all.
func (t *copier) leftInside(first []v1.LeftOut, all int64) {
	for _, l := range first {
		t.leftOut(l.Path, l.Reason)
	}
	if more := all - int64(len(first)); more > 0 {
		t.left += more
		t.copy.Bar.Clear()
		t.a.Warn("left out: %d more", more)
	}
}

// leftBy prints what an archive that was read lacks.
func (t *copier) leftBy(a *client.Archive) {
	first, all := a.LeftOut()
	if all < 0 {
		t.left++
		t.copy.Bar.Clear()
		t.a.Warn("it is not known whether something was left out: something between here and the server took the answer's trailer")
		return
	}
	t.leftInside(first, all)
}

// result returns err, or status 1 for a copy in which something was left out, which was said.
func (t *copier) result(err error) error {
	if t.left > maxTold {
		t.copy.Bar.Clear()
		t.a.Warn("left out: %d in all", t.left)
	}
	if err == nil && t.left > 0 {
		return &exit.Error{Status: exit.StatusFailed}
	}
	return err
}

// isDir reports whether a path inside is a directory, or a link to one.
func (t *copier) isDir(ctx context.Context, e endpoint) (bool, error) {
	info, err := t.cl.Stat(ctx, e.ref, e.path, t.user)
	switch {
	case fault.Is(err, fault.NotFound):
		// The sandbox itself may be what is missing.
		if _, gerr := t.cl.Get(ctx, e.ref); gerr != nil {
			return false, gerr
		}
		return false, nil
	case err != nil:
		return false, err
	case info.Type == "symlink":
		_, _, err := t.cl.ListFiles(ctx, e.ref, e.path, t.user, 1)
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
