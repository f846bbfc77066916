// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/internal/servers"
)

// TakesServer refuses --server where no server is spoken to, or another is meant.
func TakesServer(a *app.App, c *cobra.Command) error {
	if a.Server == "" {
		return nil
	}
	top := c
	for top.HasParent() && top.Parent() != c.Root() {
		top = top.Parent()
	}
	switch top.Name() {
	case "serve", "up", "down", "restore", "tls":
		return exit.Misuse(c, "sandpit %s is for this machine alone: it takes no --server", top.Name())
	case "connect", "login":
		return exit.Misuse(c, "the server of sandpit %s is its argument: %s", top.Name(), c.UseLine())
	case "server":
		return exit.Misuse(c, "sandpit server lists and chooses servers: it takes no --server")
	}
	return nil
}

// NewServer returns the group of commands about kept servers.
func NewServer(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "server",
		Aliases: []string{"servers"},
		Short:   "List and choose the servers that you signed in to",
		Long: `List and choose the servers that you signed in to with sandpit login.

A command speaks to the server that is named by, in this order:
  1. --server: a kept server's name, a URL, or local for this machine's own
  2. SANDPIT_URL with SANDPIT_TOKEN; SANDPIT_TOKEN alone is for this machine's own server
  3. the kept server in use: the one of the last login, or of sandpit server use
Without any it is this machine's own server. A token goes to no other server than it was given for: a kept
server gets the token that is kept with it, and SANDPIT_TOKEN goes where SANDPIT_URL leads. Where SANDPIT_URL is not
set, --server URL sends it to that URL, if no token is kept for it.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newServerLs(a), newServerUse(a), newServerRm(a))
	return c
}

// listedServer is a server of the list, as it is shown.
type listedServer struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Current  bool   `json:"current"`
	SignedIn bool   `json:"signed_in"`
}

func newServerLs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use: "ls [flags]", Aliases: []string{"list"}, Args: app.Takes(0, 0),
		Short: "List the servers that you signed in to, and this machine's own",
	}
	how := output.ListFlags(c, "names only")
	c.RunE = func(*cobra.Command, []string) error {
		l, err := a.Kept()
		if err != nil {
			return err
		}
		found := []listedServer{}
		if at, runsHere := a.LocalURL(); runsHere {
			found = append(found, listedServer{Name: servers.Local, URL: at, Current: l.Current == "", SignedIn: at != ""})
		}
		for _, s := range l.Servers {
			found = append(found, listedServer{Name: s.Name, URL: s.URL, Current: s.Name == l.Current, SignedIn: s.Token != ""})
		}
		if err := output.List(a.Stdout, how, found, func(s listedServer) string { return s.Name }, output.Columns[listedServer]{
			Head: []string{"NAME", "URL", "STATUS"},
			Row: func(s listedServer, _ time.Time) []string {
				var status []string
				if s.Current {
					status = append(status, "in use")
				}
				switch {
				case s.Name == servers.Local && s.URL == "":
					status = append(status, "does not run")
				case !s.SignedIn:
					status = append(status, "signed out")
				}
				return []string{s.Name, s.URL, strings.Join(status, ", ")}
			},
		}); err != nil {
			return err
		}
		overridden(a, l.Current)
		return nil
	}
	return c
}

// overridden says that the environment names another server than the one in use.
func overridden(a *app.App, current string) {
	switch {
	case a.Getenv("SANDPIT_URL") != "":
		a.Warn("SANDPIT_URL is set: without --server, commands use the server at %s", a.Getenv("SANDPIT_URL"))
	case a.Getenv("SANDPIT_TOKEN") != "" && current != "":
		a.Warn("SANDPIT_TOKEN is set: without --server, commands use this machine's own server with it")
	}
}

func newServerUse(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "use SERVER",
		Short: "Have commands use a server that you signed in to; local: this machine's own",
		Args:  app.Takes(1, 1),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return CompleteServer(a, c, args, typed)
		},
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		name, at := args[0], "this machine's own"
		if _, err := a.Keep(func(l *servers.List) error {
			if l.Current = ""; name == servers.Local {
				return nil
			}
			s, ok := l.Find(name)
			if !ok {
				s, ok = l.At(place.Tidy(name))
			}
			if !ok {
				return place.NoServer(*l, name)
			}
			name, at = s.Name, s.URL
			l.Current = name
			return nil
		}); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.Stdout, "commands use the server %s now (%s)\n", name, output.Printable(at)); err != nil {
			return err
		}
		current := name
		if name == servers.Local {
			current = ""
		}
		overridden(a, current)
		return nil
	}
	return c
}

func newServerRm(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rm SERVER...",
		Short: "Forget servers, with their tokens; nothing changes on them",
		Args:  app.Takes(1, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			l, _ := a.Kept() // none to offer
			return slices.DeleteFunc(l.Names(), func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.RunE = func(_ *cobra.Command, names []string) error {
		return a.EachName(names, func(name string) error {
			used := false
			_, err := a.Keep(func(l *servers.List) error {
				used = l.Current == name
				if !l.Remove(name) {
					return place.NoServer(*l, name)
				}
				return nil
			})
			if err == nil && used {
				a.Warn("commands use this machine's own server now")
			}
			return err
		})
	}
	return c
}

// CompleteServer completes the name of a server.
func CompleteServer(a *app.App, _ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	l, _ := a.Kept() // none to offer
	names := l.Names()
	if _, runsHere := a.LocalURL(); runsHere {
		names = append(names, servers.Local)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
