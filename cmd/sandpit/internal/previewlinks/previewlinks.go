// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package previewlinks has the commands about links to ports that can be listed and revoked.
package previewlinks

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// New returns the group of commands.
func New(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "link",
		Short: "Make, list and revoke links to ports of a sandbox",
		Long: `Make, list and revoke links to what ports of a sandbox serve over HTTP. Whoever has such a link can open it until it is
revoked or expires, or the sandbox is deleted. sandpit preview makes links of which nothing is kept, and which cannot be revoked.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newCreate(a), newLs(a), newRm(a), newAccess(a))
	return c
}

func newAccess(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "access [flags] SANDBOX",
		Short: "Show or change who may see a sandbox's ports, and what Host its programs see",
		Long: `Show or change who may see a sandbox's ports, and what Host its programs see. Ports are private as shipped: a token or a
link is needed. Public ones everyone may see by their own host name, where the operator allows it (the setting max_previews).
Development servers that refuse strangers' names are content with --host localhost.`,
		Example: `  sandpit link access web --host localhost
  sandpit link access web --public-port 8000
  sandpit link access web --private
  sandpit link access web --token`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteAll,
	}
	f := c.Flags()
	public := f.Bool("public", false, "everyone may see all ports")
	private := f.Bool("private", false, "nobody may see a port without a right to it")
	list := f.IntSlice("public-port", nil, "`PORT` that everyone may see; may be given again, and replaces those before")
	host := f.String("host", "", "the Host that programs see: own, localhost, or a name")
	token := f.Bool("token", false, "have a token that opens every port, and print it; one that there is stays")
	noToken := f.Bool("no-token", false, "take that token back, with what is open by it")
	c.MarkFlagsMutuallyExclusive("public", "private", "public-port")
	c.MarkFlagsMutuallyExclusive("token", "no-token")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r, changes := v1.UpdatePreviews{Host: flags.Given(f, "host", *host)}, f.Changed("host")
		switch {
		case *public:
			r.Access, changes = new("public"), true
		case *private:
			r.Access, r.PublicPorts, changes = new("private"), []int{}, true
		case f.Changed("public-port"):
			r.Access, r.PublicPorts, changes = new("private"), *list, true
		}
		if *token || *noToken {
			r.Token, changes = token, true
		}
		var p *v1.Previews
		if changes {
			p, err = cl.UpdatePreviews(c.Context(), args[0], r)
		} else {
			p, err = cl.Previews(c.Context(), args[0])
		}
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, p)
		}
		text := p.Access
		if len(p.PublicPorts) > 0 {
			text += " but for the ports " + strings.Trim(fmt.Sprint(p.PublicPorts), "[]")
		}
		if !p.PublicAllowed && (p.Access == "public" || len(p.PublicPorts) > 0) {
			text += " (this server shows none: max_previews is private)"
		}
		text += "; programs see the host: " + p.Host + "\n"
		if *token && p.Token != nil {
			text += *p.Token + "\n"
		}
		_, err = fmt.Fprint(a.Stdout, text)
		return err
	}
	return c
}

func newCreate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "create [flags] SANDBOX PORT",
		Short:             "Make a link to a port and print it",
		Example:           "  sandpit link create web 8000 --expires 30d",
		Args:              app.Takes(2, 2),
		ValidArgsFunction: a.CompletePort,
	}
	var expires flags.Period
	c.Flags().Var(&expires, "expires", "how long it is good (default: until it is revoked)")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		port, err := strconv.Atoi(args[1])
		if err != nil {
			return exit.Misuse(c, "%q is not a port", args[1])
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		l, err := cl.CreatePreviewLink(c.Context(), args[0], v1.CreatePreviewLink{Port: port, ExpiresSeconds: expires.Seconds()})
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, l)
		}
		_, err = fmt.Fprintln(a.Stdout, l.URL)
		return err
	}
	return c
}

func newLs(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags] SANDBOX", Aliases: []string{"list"}, Short: "List links to ports", Args: app.Takes(1, 1), ValidArgsFunction: a.CompleteAll}
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.PreviewLinks(c.Context(), args[0])
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, all, func(l v1.PreviewLink) string { return l.ID }, output.Columns[v1.PreviewLink]{
			Head: []string{"ID", "PORT", "BY", "CREATED", "EXPIRES", "URL"},
			Row: func(l v1.PreviewLink, now time.Time) []string {
				expires := "never"
				if l.ExpiresAt != nil {
					expires = output.Ago(now, l.ExpiresAt)
				}
				return []string{l.ID, strconv.Itoa(l.Port), l.CreatedBy, output.Ago(now, &l.CreatedAt), expires, l.URL}
			},
			Called: func(l v1.PreviewLink) string { return l.ID },
		})
	}
	return c
}

func newRm(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "rm SANDBOX LINK...", Aliases: []string{"revoke"}, Short: "Revoke links to ports, by their ids, with what is open by them", Args: app.Takes(2, -1), ValidArgsFunction: a.CompleteAll}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		for _, id := range args[1:] {
			if err := cl.RevokePreviewLink(c.Context(), args[0], id); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, output.Printable(id))
		}
		return nil
	}
	return c
}
