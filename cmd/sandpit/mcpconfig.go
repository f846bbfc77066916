// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
	"sandpit.dev/internal/mcpsetup"
)

// mcpChoice is what a client is to be told.
type mcpChoice struct {
	client, name, profile, file string
	stdio, write, withToken     bool
}

func newMCPConfig(a *app) *cobra.Command {
	var names []string
	for _, m := range mcpsetup.Clients() {
		names = append(names, m.ID)
	}
	c := &cobra.Command{
		Use:   "config [CLIENT] [flags]",
		Short: "Print how to add this server to an MCP client, or add it",
		Long: `Print what an MCP client reads to find this server, ready to be pasted; without CLIENT for each one. With
--write it is merged into the client's own file: other entries and comments stay as they are, a copy of the file as
it was is kept beside it, and a file that cannot be understood is left alone.

The address is the one that this command speaks to. Where the client can read a variable, or ask its user, the token
is not in the file: have it in SANDPIT_TOKEN where the client runs. Else, and with --with-token, it is in the file,
which is its owner's alone then: the one that this command speaks to the server with, or, if that is an
administrator's, one that is made for the client and may use sandboxes only. It is on no command line.

Clients: ` + strings.Join(names, ", ") + ".",
		Example: `  sandpit mcp config cursor
  sandpit mcp config --client claude-code --write
  SANDPIT_TOKEN=$(sandpit token create --name desk) sandpit mcp config claude-desktop --with-token --write`,
		Args:      takes(0, 1),
		ValidArgs: names,
	}
	var o mcpChoice
	f := c.Flags()
	f.StringVar(&o.client, "client", "", "the client, as CLIENT")
	f.StringVar(&o.name, "name", mcpsetup.DefaultName, "what the client is to call the server")
	f.StringVar(&o.profile, "profile", "", "the set of tools (default: the server's, or the token's)")
	f.BoolVar(&o.stdio, "stdio", false, "have the client start sandpit mcp instead of opening a URL")
	f.BoolVar(&o.write, "write", false, "merge it into the client's file")
	f.BoolVar(&o.withToken, "with-token", false, "write the token itself, and not where the client finds it")
	f.StringVar(&o.file, "file", "", "with --write: the file (default: the client's own, for this user)")
	_ = c.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			if o.client != "" && o.client != args[0] {
				return misuse(c, "two clients are named: %s and %s", args[0], o.client)
			}
			o.client = args[0]
		}
		if o.client == "claude" {
			o.client = "claude-code"
		}
		if o.client != "" && !slices.Contains(names, o.client) {
			return misuse(c, "no client %q is known; there are %s", o.client, strings.Join(names, ", "))
		}
		if err := mcpsetup.CheckName(o.name); err != nil {
			return misuse(c, "--name: %v", err)
		}
		if o.profile != "" && mcpsetup.CheckName(o.profile) != nil {
			return misuse(c, "--profile: %q is not a valid profile name", o.profile)
		}
		switch {
		case o.write && o.client == "":
			return misuse(c, "--write needs a client: one of %s", strings.Join(names, ", "))
		case o.withToken && o.client == "":
			return misuse(c, "--with-token needs a client: one of %s", strings.Join(names, ", "))
		case o.file != "" && !o.write:
			return misuse(c, "--file says where --write writes")
		}
		ctx, stop := interruptible(c.Context())
		defer stop()
		return interrupted(ctx, a.mcpConfig(ctx, o))
	}
	return c
}

func (a *app) mcpConfig(ctx context.Context, o mcpChoice) error {
	p, err := a.locate()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	s := mcpsetup.Server{Name: o.name, URL: mcpURL(p, o.profile), Profile: o.profile, Program: program, Stdio: o.stdio}
	switch { // what the client starts is to find the same server, in another environment
	case p.kept != "":
		s.Bridge = p.kept
	case p.data == "" || p.by == byNobody && a.getenv("SANDPIT_RUN_DIR") != "":
		s.Remote = true
	case p.by != byNobody:
		s.Bridge = tidy(p.url)
	}
	if o.client != "" {
		m, _ := mcpsetup.Find(o.client)
		return a.mcpClient(ctx, m, s, p, o)
	}
	for i, m := range mcpsetup.Clients() {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		where := m.Note
		if files := m.Files(a.mcpEnv()); len(files) > 0 {
			where = files[0]
		}
		one := s
		if !m.Refers(s) {
			one.Token = "TOKEN" // for one client it is a real one
		}
		if _, err := fmt.Fprintf(a.stdout, "# %s (%s): %s\n%s\n", m.Title, m.ID, where, m.Snippet(one)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) mcpEnv() mcpsetup.Env {
	return mcpsetup.Env{Home: cmp.Or(a.getenv("HOME"), a.getenv("USERPROFILE")), Getenv: a.getenv} // the second on Windows
}

// mcpClient prints what one client reads, or writes it, and tells what else there is to do.
func (a *app) mcpClient(ctx context.Context, m mcpsetup.Client, s mcpsetup.Server, p place, o mcpChoice) error {
	files := m.Files(a.mcpEnv())
	if o.write {
		if o.file == "" && (len(files) == 0 || a.mcpEnv().Home == "") {
			return fault.New(fault.Invalid, "it is not known where the file of %s is", m.Title).
				WithRemedy("name it with --file")
		}
		if o.file != "" {
			files = []string{o.file}
		}
	}
	if o.withToken || !m.Refers(s) {
		if o.write { // a file that cannot be written is no reason to make a token
			if err := a.mergeable(m, s, files); err != nil {
				return err
			}
		}
		token, err := a.tokenFor(ctx, m, p, o)
		if err != nil {
			return err
		}
		s.Token = token
	}
	if o.write {
		if err := a.writeMCP(m, s, files); err != nil {
			return err
		}
	} else {
		if _, err := fmt.Fprintln(a.stdout, m.Snippet(s)); err != nil {
			return err
		}
		if len(files) > 0 {
			a.warn("%s reads it in %s", m.Title, files[0])
		}
		if line := m.Command(s); line != "" {
			a.warn("or run: %s", line)
		}
		if link := m.Link(s); link != "" && !s.Stdio {
			a.warn("or open: %s", link)
		}
	}
	if m.Note != "" {
		a.warn("%s", m.Note)
	}
	if s.Token == "" && m.Names(s) {
		a.warn("%s has to have %s in its environment: sandpit token create --name %s makes one", m.Title, mcpsetup.TokenVar, m.ID)
	}
	return nil
}

// claudeLine adds the server of this machine to Claude Code. The line has no secret: it makes a
// token for that client alone, which may use sandboxes and administer nothing.
func claudeLine(flags string) string {
	return ownProgram() + flags + " mcp config claude-code --with-token --write"
}

// ownProgram returns what a shell starts this program by.
func ownProgram() string {
	path, err := os.Executable()
	if err != nil {
		return "sandpit"
	}
	if found, err := exec.LookPath("sandpit"); err == nil {
		if same, err := filepath.EvalSymlinks(found); err == nil && same == path {
			return "sandpit"
		}
	}
	return mcpsetup.Quote(path)
}

// backupSuffix is what the copy of a file as it was is called by.
const backupSuffix = ".before-sandpit"

// mcpFile returns the first of a client's files that is there, or else the one to make.
func mcpFile(files []string) string {
	for _, f := range files {
		if _, err := os.Lstat(f); err == nil {
			return f
		}
	}
	return files[0]
}

// mergeable reports why a server cannot be merged into a client's file, as it is now.
func (a *app) mergeable(m mcpsetup.Client, s mcpsetup.Server, files []string) error {
	path := mcpFile(files)
	old, _, err := readOwn(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := m.Merge(old, s); err != nil {
		return unmergeable(m, path, err)
	}
	return nil
}

func unmergeable(m mcpsetup.Client, path string, err error) error {
	return fault.New(fault.Invalid, "%s cannot be merged into: %v", path, err).
		WithRemedy("mend the file, or paste what sandpit mcp config %s prints", m.ID)
}

// writeMCP merges a server into the first of a client's files that is there, or makes the first.
func (a *app) writeMCP(m mcpsetup.Client, s mcpsetup.Server, files []string) error {
	path := mcpFile(files)
	const tries = 3 // some clients write their file all the time
	for range tries {
		done, err := a.mergeMCP(m, s, path)
		if done || err != nil {
			return err
		}
	}
	return fault.New(fault.Conflict, "%s is being written by another program", path).
		WithRemedy("end %s and try again", m.Title)
}

// mergeMCP merges once. It is false if the file changed meanwhile; then it was left alone.
func (a *app) mergeMCP(m mcpsetup.Client, s mcpsetup.Server, path string) (bool, error) {
	old, mode, err := readOwn(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return false, err
	}
	merged, err := m.Merge(old, s)
	if err != nil {
		return false, unmergeable(m, path, err)
	}
	if fresh || s.Token != "" {
		mode &= 0o600
	}
	if fresh {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return false, err
		}
	}
	if bytes.Equal(merged, old) && !fresh {
		a.warn("%s is in %s already", s.Name, path)
		return true, os.Chmod(path, mode)
	}
	if !fresh {
		if err := atomicfile.Write(path+backupSuffix, old, mode); err != nil {
			return false, err
		}
	}
	now, _, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) != fresh || !bytes.Equal(now, old) {
		return false, nil
	}
	if err := atomicfile.Write(path, merged, mode); err != nil {
		return false, err
	}
	a.warn("%s is in %s now", s.Name, path)
	if !fresh {
		a.warn("the file as it was is %s", path+backupSuffix)
	}
	return true, nil
}

// readOwn reads a plain file of the user's. A link is not followed: what is put in its place
// would not be what it led to.
func readOwn(path string) (text []byte, mode fs.FileMode, err error) {
	f, err := openPlain(path)
	if errors.Is(err, errLink) {
		to, _ := os.Readlink(path)
		return nil, 0, fault.New(fault.Invalid, "%s is a link, to %s", path, to).
			WithRemedy("name the file itself with --file, if that is the one")
	}
	if err != nil {
		return nil, 0o600, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	switch {
	case !st.Mode().IsRegular():
		return nil, 0, fault.New(fault.Invalid, "%s is not a plain file", path)
	case !owned(st):
		return nil, 0, fault.New(fault.Denied, "%s belongs to another user", path).
			WithRemedy("run this as that user")
	case st.Size() > mcpsetup.MaxFile:
		return nil, 0, fault.New(fault.TooLarge, "%s has %d bytes, more than %d", path, st.Size(), mcpsetup.MaxFile)
	}
	text, err = io.ReadAll(io.LimitReader(f, mcpsetup.MaxFile+1))
	return text, st.Mode().Perm(), err
}

// errLink is why openPlain opens nothing.
var errLink = errors.New("it is a link")
