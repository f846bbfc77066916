// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/input"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/cmd/sandpit/internal/projects"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
	"sandpit.dev/internal/servers"
)

// whoamiBound is how long a server may take to say whose a token is.
const whoamiBound = 30 * time.Second

// NewLogin returns the command that signs in to a server.
func NewLogin(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "login URL [flags]",
		Short: "Sign in to a server elsewhere: keep its address and a token, and use it from now on",
		Long: `Sign in to a server elsewhere: its address and a token are kept for this user alone, and commands use that
server from now on. URL is the server's, or the name of one that is kept.

The token is asked for, or comes from standard input. It is never an argument, which others on this machine could
read. The server is asked whether it takes it before anything is kept. On the server, sandpit token create --name NAME
makes one. Tokens are in servers.json in the directory sandpit of the user's configuration (~/.config, on macOS
~/Library/Application Support, on Windows %AppData%), which only its owner can read.`,
		Example: `  sandpit login https://box.example.org
  pass show sandpit | sandpit login https://box.example.org --name box
  sandpit --server box ls`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				return exit.Misuse(c, "the token is no argument: others on this machine could read it; give it on standard input")
			}
			return app.Takes(1, 1)(c, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			l, _ := a.Kept() // none to offer
			return l.Names(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	name := c.Flags().String("name", "", "what it is called here (default: its host)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("name") {
			if err := servers.CheckName(*name); err != nil {
				return exit.Misuse(c, "--name: %v", err)
			}
		}
		l, err := a.Kept()
		if err != nil {
			return err
		}
		s, err := newcomer(l, args[0], *name)
		if err != nil {
			return exit.Misuse(c, "%v", err)
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, signIn(ctx, a, s))
	}
	return c
}

// newcomer is the server that a person means to sign in to, without its token.
func newcomer(l servers.List, what, name string) (servers.Server, error) {
	s, known := l.Find(what)
	if !known {
		if what == servers.Local {
			return s, fmt.Errorf("%q is this machine's own server, which needs no sign-in: sandpit server use %s", what, what)
		}
		if !place.IsURL(what) {
			what = scheme(what) + what
		}
		u, err := place.ParseURL(what)
		if err != nil {
			return s, err
		}
		if s, known = l.At(u.String()); !known {
			s = servers.Server{Name: servers.NameOf(u.Host), URL: u.String()}
		}
	}
	s.Token = ""
	s.Name = cmp.Or(name, s.Name)
	if other, taken := l.Find(s.Name); taken && other.URL != s.URL {
		return s, fmt.Errorf("the name %s is that of the server at %s; choose another with --name", s.Name, other.URL)
	}
	return s, servers.CheckName(s.Name)
}

// scheme is how a server is spoken to that was named without: in the clear on this machine alone.
func scheme(host string) string {
	bare, _, _ := strings.Cut(host, "/")
	if i := strings.LastIndexByte(bare, ':'); i >= 0 {
		bare = bare[:i]
	}
	if place.Loopback(strings.Trim(bare, "[]")) {
		return "http://"
	}
	return "https://"
}

// signIn asks for the token of s, has the server check it, and keeps both.
func signIn(ctx context.Context, a *app.App, s servers.Server) error {
	if u, err := place.ParseURL(s.URL); err == nil && u.Scheme == "http" && !place.Loopback(u.Hostname()) {
		a.Warn("the token goes to %s without encryption: whoever is on the way can read it", u.Host)
	}
	token, err := askToken(ctx, a, s.URL)
	if err != nil {
		return err
	}
	s.Token = token
	who, err := AskWho(ctx, a, place.Server{URL: s.URL, Token: token})
	if fault.Is(err, fault.Unauthenticated) {
		return fault.New(fault.Unauthenticated, "the server at %s does not take this token; nothing was kept", s.URL).
			WithRemedy("make one there with: sandpit token create --name NAME")
	}
	if err != nil {
		return err
	}
	path, err := a.Keep(func(l *servers.List) error {
		if was, ok := l.At(s.URL); ok {
			l.Remove(was.Name) // also if it has another name now
		}
		if other, taken := l.Find(s.Name); taken {
			return fault.New(fault.Conflict, "the name %s is that of the server at %s by now", s.Name, other.URL).WithRemedy("choose another with --name")
		}
		l.Put(s)
		l.Current = s.Name
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.Stdout, "signed in to %s as %s (project %s, %s); commands use this server now, which is called %s here\n",
		output.Printable(s.URL), output.Printable(who.Name), output.Printable(who.Project), output.Printable(strings.Join(who.Scopes, ", ")), s.Name); err != nil {
		return err
	}
	a.Warn("the token is kept in %s", path)
	if who.TokenID == nil {
		a.Warn("it is the server's own administrator's token, which may do everything; make one that may less with: sandpit token create --name NAME")
	}
	overridden(a, s.Name)
	return nil
}

// askToken returns the token that a person types, or that standard input has.
func askToken(ctx context.Context, a *app.App, at string) (string, error) {
	var b []byte
	var err error
	switch {
	case a.Stdin == nil:
		err = io.EOF
	case term.IsTerminal(int(a.Stdin.Fd())):
		b, err = terminal.AskSecret(ctx, a.Stdin, a.Stderr, "token of "+at)
	default:
		b, err = input.ReadUpTo(func() (io.ReadCloser, error) { return io.NopCloser(a.Stdin), nil })
	}
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the token cannot be read")
	}
	token := strings.TrimSpace(string(b))
	switch {
	case token == "":
		return "", fault.New(fault.Invalid, "there is no token").WithRemedy("type it, or give it on standard input; sandpit token create, on the server, makes one")
	case strings.ContainsFunc(token, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f }):
		return "", fault.New(fault.Invalid, "what was given is not a token: it has spaces, several lines or characters that no token has")
	}
	return token, nil
}

// AskWho asks a server whose a token is.
func AskWho(ctx context.Context, a *app.App, p place.Server) (*v1.Whoami, error) {
	ctx, cancel := context.WithTimeout(ctx, whoamiBound)
	defer cancel()
	who, err := a.ClientOf(p).Whoami(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrap(fault.Unsupported, err, "what answers at %s is no sandpit server, or one that is older than this program", p.URL).
			WithRemedy("see whether the URL is right; an older server is used with SANDPIT_URL and SANDPIT_TOKEN")
	}
	return who, err
}

// NewLogout returns the command that forgets a server.
func NewLogout(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "logout [SERVER]",
		Short: "Forget the token of a server that you signed in to; the default is the one in use",
		Long: `Forget the token of a server that you signed in to; the default is the one in use, after which commands use this
machine's own. Its address stays: sandpit login SERVER signs in again, sandpit server rm forgets it whole.
The token itself stays valid: sandpit token rm ends it.`,
		Args: app.Takes(0, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			l, _ := a.Kept() // none to offer
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return l.Names(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && a.Server != "" && a.Server != args[0] {
			return exit.Misuse(c, "two servers are named: %s and %s", a.Server, args[0])
		}
		name := a.Server
		if len(args) == 1 {
			name = args[0]
		}
		used := false
		if _, err := a.Keep(func(l *servers.List) error {
			name = cmp.Or(name, l.Current)
			if name == "" {
				return fault.New(fault.State, "the server in use is this machine's own, which was not signed in to").
					WithRemedy("name one of sandpit server ls")
			}
			s, ok := l.Find(name)
			if !ok {
				s, ok = l.At(place.Tidy(name))
			}
			if !ok {
				return place.NoServer(*l, name)
			}
			name, s.Token = s.Name, ""
			l.Put(s)
			if used = l.Current == name; used {
				l.Current = ""
			}
			return nil
		}); err != nil {
			return err
		}
		after := ""
		if used {
			after = "; commands use this machine's own server now"
		}
		_, err := fmt.Fprintf(a.Stdout, "the token of the server %s is forgotten here%s\n", name, after)
		return err
	}
	return c
}

// identity is who a person is to which server.
type identity struct {
	Server string `json:"server"`
	v1.Whoami
}

// NewWhoami returns the command that says which token commands have.
func NewWhoami(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "whoami [flags]",
		Short: "Say which server commands speak to, with which token, and what that may do",
		Long: `Say which server commands speak to, with which token, and what that may do: its project, its scopes, when it expires,
and what is left of the project's quotas, if it has any.`,
		Args: app.Takes(0, 0),
	}
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		p, err := a.Locate()
		if err != nil {
			return err
		}
		who, err := AskWho(c.Context(), a, p)
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, identity{p.URL, *who})
		}
		return writeIdentity(a.Stdout, p, who, time.Now())
	}
	return c
}

func writeIdentity(w io.Writer, p place.Server, who *v1.Whoami, now time.Time) error {
	server, token, expires := p.URL, who.Name, "never"
	switch {
	case p.Kept != "":
		server += " (" + p.Kept + ")"
	case p.By == place.ByNobody:
		server += " (" + servers.Local + ")"
	}
	if who.TokenID != nil {
		token += " (" + *who.TokenID + ")"
	} else {
		token += " (the server's own)"
	}
	if who.ExpiresAt != nil {
		expires = output.Ago(now, who.ExpiresAt)
	}
	rows := [][2]string{{"server", server}, {"token", token}, {"project", who.Project}, {"scopes", strings.Join(who.Scopes, ", ")}, {"expires", expires}}
	if who.Profile != "" {
		rows = append(rows, [2]string{"tools", who.Profile})
	}
	if left := projects.Left(who.Left); left != "" {
		rows = append(rows, [2]string{"left", left})
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(w, "%-8s  %s\n", row[0], output.Printable(row[1])); err != nil {
			return err
		}
	}
	return nil
}
