// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/fault"
	"sandpit.dev/internal/servers"
)

// serverFlag is a flag that names a server. An empty one is refused: in a script it is a variable
// that is not set, and another server would get what is meant for one.
type serverFlag string

func (f *serverFlag) Type() string   { return "SERVER" }
func (f *serverFlag) String() string { return string(*f) }

func (f *serverFlag) Set(s string) error {
	switch {
	case isURL(s):
		if _, err := serverURL(s); err != nil {
			return err
		}
	case s != servers.Local && servers.CheckName(s) != nil:
		return fmt.Errorf("%q is not a server: give a name of sandpit server ls, an http or https URL, or local", s)
	}
	*f = serverFlag(s)
	return nil
}

func isURL(s string) bool { return strings.Contains(s, "://") }

// tidy returns a server's URL as it is kept and compared.
func tidy(text string) string {
	return strings.TrimSuffix(strings.TrimRight(text, "/"), "/v1")
}

// serverURL is the address of a server that a person means, also by the URL of a part of it.
func serverURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not an http or https URL", text)
	case u.User != nil:
		return nil, errors.New("the URL has a user in it; a token comes from a prompt or standard input, and is kept by sandpit login")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q is not a server's URL: it has a query or a fragment", text)
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimSuffix(tidy(u.Path), "/mcp")
	return u, nil
}

// takesServer refuses --server where no server is spoken to, or another is meant.
func (a *app) takesServer(c *cobra.Command) error {
	if a.server == "" {
		return nil
	}
	top := c
	for top.HasParent() && top.Parent() != c.Root() {
		top = top.Parent()
	}
	switch top.Name() {
	case "serve", "up", "down", "restore", "doctor":
		return misuse(c, "sandpit %s is for this machine alone: it takes no --server", top.Name())
	case "connect", "login":
		return misuse(c, "the server of sandpit %s is its argument: %s", top.Name(), c.UseLine())
	case "server":
		return misuse(c, "sandpit server lists and chooses servers: it takes no --server")
	}
	return nil
}

// until says how commands use this machine's server again.
func (p place) until() string {
	if p.by == byVariable {
		return "SANDPIT_URL is unset"
	}
	return "you say: sandpit server use " + servers.Local
}

// keptServers returns the servers that were signed in to.
func (a *app) keptServers() (servers.List, error) {
	path, err := servers.Path(runtime.GOOS, a.getenv)
	if err != nil { // there is no place where any could be
		return servers.List{}, nil
	}
	l, err := servers.Read(path)
	if err != nil {
		return l, fault.Wrap(fault.Unavailable, err, "the list of servers cannot be read").
			WithRemedy("mend or remove %s, and sign in again (sandpit login URL)", path)
	}
	return l, nil
}

// keep changes the list of servers, and returns the path of its file.
func (a *app) keep(change func(*servers.List) error) (path string, err error) {
	path, err = servers.Path(runtime.GOOS, a.getenv)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "there is no place to keep servers at").WithRemedy("set HOME, or use SANDPIT_URL and SANDPIT_TOKEN")
	}
	l, err := a.keptServers()
	if err != nil {
		return "", err
	}
	if err := change(&l); err != nil {
		return "", err
	}
	if err := l.Write(path); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the list of servers cannot be written")
	}
	return path, nil
}

func noServer(l servers.List, name string) error {
	e := fault.New(fault.NotFound, "there is no server %q among those that you signed in to", name)
	if len(l.Servers) == 0 {
		return e.WithRemedy("sign in to it with: sandpit login URL")
	}
	return e.WithRemedy("use one of: %s, or sign in with: sandpit login URL", strings.Join(l.Names(), ", "))
}

func newServer(a *app) *cobra.Command {
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
		RunE: group,
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

func newServerLs(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "ls [flags]", Aliases: []string{"list"}, Args: takes(0, 0),
		Short: "List the servers that you signed in to, and this machine's own",
	}
	how := listFlags(c, "names only")
	c.RunE = func(*cobra.Command, []string) error {
		l, err := a.keptServers()
		if err != nil {
			return err
		}
		found := []listedServer{}
		if at, runsHere := a.localURL(); runsHere {
			found = append(found, listedServer{Name: servers.Local, URL: at, Current: l.Current == "", SignedIn: at != ""})
		}
		for _, s := range l.Servers {
			found = append(found, listedServer{Name: s.Name, URL: s.URL, Current: s.Name == l.Current, SignedIn: s.Token != ""})
		}
		if err := list(a.stdout, how, found, func(s listedServer) string { return s.Name }, columns[listedServer]{
			head: []string{"NAME", "URL", "STATUS"},
			row: func(s listedServer, _ time.Time) []string {
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
		a.overridden(l.Current)
		return nil
	}
	return c
}

// overridden says that the environment names another server than the one in use.
func (a *app) overridden(current string) {
	switch {
	case a.getenv("SANDPIT_URL") != "":
		a.warn("SANDPIT_URL is set: without --server, commands use the server at %s", a.getenv("SANDPIT_URL"))
	case a.getenv("SANDPIT_TOKEN") != "" && current != "":
		a.warn("SANDPIT_TOKEN is set: without --server, commands use this machine's own server with it")
	}
}

func newServerUse(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "use SERVER",
		Short: "Have commands use a server that you signed in to; local: this machine's own",
		Args:  takes(1, 1),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeServer(c, args, typed)
		},
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		name, at := args[0], "this machine's own"
		if _, err := a.keep(func(l *servers.List) error {
			if l.Current = ""; name == servers.Local {
				return nil
			}
			s, ok := l.Find(name)
			if !ok {
				s, ok = l.At(tidy(name))
			}
			if !ok {
				return noServer(*l, name)
			}
			name, at = s.Name, s.URL
			l.Current = name
			return nil
		}); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.stdout, "commands use the server %s now (%s)\n", name, printable(at)); err != nil {
			return err
		}
		current := name
		if name == servers.Local {
			current = ""
		}
		a.overridden(current)
		return nil
	}
	return c
}

func newServerRm(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "rm SERVER...",
		Short: "Forget servers, with their tokens; nothing changes on them",
		Args:  takes(1, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			l, _ := a.keptServers() // none to offer
			return slices.DeleteFunc(l.Names(), func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.RunE = func(_ *cobra.Command, names []string) error {
		return a.eachName(names, func(name string) error {
			used := false
			_, err := a.keep(func(l *servers.List) error {
				used = l.Current == name
				if !l.Remove(name) {
					return noServer(*l, name)
				}
				return nil
			})
			if err == nil && used {
				a.warn("commands use this machine's own server now")
			}
			return err
		})
	}
	return c
}

// completeServer completes the name of a server.
func (a *app) completeServer(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	l, _ := a.keptServers() // none to offer
	names := l.Names()
	if _, runsHere := a.localURL(); runsHere {
		names = append(names, servers.Local)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
