// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/login"
	"sandpit.dev/cmd/sandpit/internal/mcpfile"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mcpsetup"
)

// mcpChoice is what a client is to be told.
type mcpChoice struct {
	client, name, profile, file string
	stdio, write, withToken     bool
}

func newConfig(a *app.App) *cobra.Command {
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
		Args:      app.Takes(0, 1),
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
				return exit.Misuse(c, "two clients are named: %s and %s", args[0], o.client)
			}
			o.client = args[0]
		}
		if o.client == "claude" {
			o.client = "claude-code"
		}
		if o.client != "" && !slices.Contains(names, o.client) {
			return exit.Misuse(c, "no client %q is known; there are %s", o.client, strings.Join(names, ", "))
		}
		if err := mcpsetup.CheckName(o.name); err != nil {
			return exit.Misuse(c, "--name: %v", err)
		}
		if o.profile != "" && mcpsetup.CheckName(o.profile) != nil {
			return exit.Misuse(c, "--profile: %q is not a valid profile name", o.profile)
		}
		switch {
		case o.write && o.client == "":
			return exit.Misuse(c, "--write needs a client: one of %s", strings.Join(names, ", "))
		case o.withToken && o.client == "":
			return exit.Misuse(c, "--with-token needs a client: one of %s", strings.Join(names, ", "))
		case o.file != "" && !o.write:
			return exit.Misuse(c, "--file says where --write writes")
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, mcpConfig(ctx, a, o))
	}
	return c
}

func mcpConfig(ctx context.Context, a *app.App, o mcpChoice) error {
	p, err := a.Locate()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	s := mcpsetup.Server{Name: o.name, URL: URL(p, o.profile), Profile: o.profile, Program: program, Stdio: o.stdio}
	switch { // what the client starts is to find the same server, in another environment
	case p.Kept != "":
		s.Bridge = p.Kept
	case p.Data == "" || p.By == place.ByNobody && a.Getenv("SANDPIT_RUN_DIR") != "":
		s.Remote = true
	case p.By != place.ByNobody:
		s.Bridge = place.Tidy(p.URL)
	}
	if o.client != "" {
		m, _ := mcpsetup.Find(o.client)
		return mcpClient(ctx, a, m, s, p, o)
	}
	for i, m := range mcpsetup.Clients() {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		where := m.Note
		if files := m.Files(mcpEnv(a)); len(files) > 0 {
			where = files[0]
		}
		one := s
		if !m.Refers(s) {
			one.Token = "TOKEN" // for one client it is a real one
		}
		if _, err := fmt.Fprintf(a.Stdout, "# %s (%s): %s\n%s\n", m.Title, m.ID, where, m.Snippet(one)); err != nil {
			return err
		}
	}
	return nil
}

func mcpEnv(a *app.App) mcpsetup.Env {
	return mcpsetup.Env{Home: cmp.Or(a.Getenv("HOME"), a.Getenv("USERPROFILE")), Getenv: a.Getenv} // the second on Windows
}

// mcpClient prints what one client reads, or writes it, and tells what else there is to do.
func mcpClient(ctx context.Context, a *app.App, m mcpsetup.Client, s mcpsetup.Server, p place.Server, o mcpChoice) error {
	files := m.Files(mcpEnv(a))
	if o.write {
		if o.file == "" && (len(files) == 0 || mcpEnv(a).Home == "") {
			return fault.New(fault.Invalid, "it is not known where the file of %s is", m.Title).
				WithRemedy("name it with --file")
		}
		if o.file != "" {
			files = []string{o.file}
		}
	}
	if o.withToken || !m.Refers(s) {
		if o.write { // a file that cannot be written is no reason to make a token
			if err := mcpfile.Mergeable(m, s, files); err != nil {
				return err
			}
		}
		token, err := tokenFor(ctx, a, m, p, o)
		if err != nil {
			return err
		}
		s.Token = token
	}
	if o.write {
		if err := mcpfile.Write(m, s, files, a.Warn); err != nil {
			return err
		}
	} else {
		if _, err := fmt.Fprintln(a.Stdout, m.Snippet(s)); err != nil {
			return err
		}
		if len(files) > 0 {
			a.Warn("%s reads it in %s", m.Title, files[0])
		}
		if line := m.Command(s); line != "" {
			a.Warn("or run: %s", line)
		}
		if link := m.Link(s); link != "" && !s.Stdio {
			a.Warn("or open: %s", link)
		}
	}
	if m.Note != "" {
		a.Warn("%s", m.Note)
	}
	if s.Token == "" && m.Names(s) {
		a.Warn("%s has to have %s in its environment: sandpit token create --name %s makes one", m.Title, mcpsetup.TokenVar, m.ID)
	}
	return nil
}

// ClaudeLine adds the server of this machine to Claude Code. The line has no secret: it makes a
// token for that client alone, which may use sandboxes and administer nothing.
func ClaudeLine(flags string) string {
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

// askBound is how long a server may take to say what the own token may do, where it is not needed
// for sure.
const askBound = 5 * time.Second

// tokenFor returns the token that is written down for a client: the own one, or, if that is an
// administrator's, one that is made for this client on this machine. A file that is written anew
// takes the place of the one before, and so does its token.
func tokenFor(ctx context.Context, a *app.App, m mcpsetup.Client, p place.Server, o mcpChoice) (string, error) {
	asked, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	who, err := login.AskWho(asked, a, p)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) || fault.Is(err, fault.Unsupported):
		a.Warn("the token is the one of this command; what it may do cannot be asked: %s", output.Whole(err))
		return p.Token, nil
	case err != nil:
		return "", err
	case !slices.Contains(who.Scopes, "admin"):
		return p.Token, nil
	}
	name := m.ID
	if o.name != mcpsetup.DefaultName {
		name += "-" + o.name
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	name = name[:min(len(name), maxTokenName)]
	cl := a.ClientOf(p)
	r := v1.CreateToken{Name: name, Project: &who.Project, Scopes: []string{"sandboxes:read", "sandboxes:write"}}
	made, err := cl.CreateToken(ctx, r)
	if fault.Is(err, fault.Exists) {
		if !o.write {
			return "", fault.New(fault.Exists, "there is a token %s already, and it cannot be shown again", name).
				WithRemedy("replace it and write the file with --write, or end it with: sandpit token rm %s", name)
		}
		if err := cl.DeleteToken(ctx, who.Project, name); err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
		made, err = cl.CreateToken(ctx, r)
	}
	if err != nil {
		return "", err
	}
	a.Warn("made the token %s for it, which may use sandboxes and administer nothing; sandpit token rm %[1]s ends it", name)
	return made.Secret, nil
}

// maxTokenName is how long the name of a token may be.
const maxTokenName = 64
