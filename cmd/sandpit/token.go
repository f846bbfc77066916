// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newToken(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list, rotate and end tokens, which programs call the server with",
		Args:  cobra.ArbitraryArgs,
		RunE:  app.Group,
	}
	c.AddCommand(newTokenCreate(a), newTokenLs(a), newTokenRotate(a), newTokenRm(a))
	return c
}

func newTokenCreate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "create --name NAME [flags]",
		Short: "Make a token and print it; it is never shown again",
		Long: `Make a token and print it; it is never shown again. With --sandbox it is good for the inside of that sandbox and for
nothing else, nothing is stored of it, and it ends with the sandbox or by sandpit token rotate --sandbox.`,
		Example: `  sandpit token create --name claude
  sandpit token create --name dashboard --scope sandboxes:read --ttl 30d
  sandpit token create --sandbox web --scope read --ttl 1h`,
		Args: app.NamedByFlag("token"),
	}
	var r v1.CreateToken
	var project string
	var ttl flags.Period
	f := c.Flags()
	f.StringVar(&r.Name, "name", "", "what it is called in events; unique in its project")
	f.StringVar(&project, "project", "", "whose sandboxes it reaches (default: those of your own project)")
	f.StringSliceVar(&r.Scopes, "scope", nil, "sandboxes:read, sandboxes:write or admin (default: the first two); with --sandbox read, write or ports; may be given again")
	var box string
	f.StringVar(&box, "sandbox", "", "make one that is good for this `SANDBOX` alone")
	_ = c.RegisterFlagCompletionFunc("sandbox", a.CompleteAll)
	f.StringVar(&r.Profile, "mcp-profile", "", "the set of MCP tools that its holder gets (default: the server's)")
	f.Var(&ttl, "ttl", "how long it is valid (default: for ever)")
	_ = c.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"sandboxes:read", "sandboxes:write", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.Changed("sandbox") {
			if f.Changed("project") || f.Changed("mcp-profile") {
				return exit.Misuse(c, "--sandbox goes with neither --project nor --mcp-profile")
			}
			return createSandboxToken(c, a, box, v1.CreateSandboxToken{Name: r.Name, Scopes: r.Scopes, ExpiresInSeconds: ttl.Seconds()}, *out)
		}
		if r.Name == "" {
			return exit.Misuse(c, "a token needs a --name")
		}
		r.Project, r.ExpiresInSeconds = flags.Given(f, "project", project), ttl.Seconds()
		cl, err := a.Client()
		if err != nil {
			return err
		}
		t, err := cl.CreateToken(c.Context(), r)
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, t)
		}
		a.Warn("token %s of project %s, with %s; keep it, it is never shown again", t.Name, t.Project, strings.Join(t.Scopes, ", "))
		_, err = fmt.Fprintln(a.Stdout, t.Secret)
		return err
	}
	return c
}

// createSandboxToken makes a token that is good for one sandbox, and prints it.
func createSandboxToken(c *cobra.Command, a *app.App, ref string, r v1.CreateSandboxToken, out output.Format) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	t, err := cl.CreateSandboxToken(c.Context(), ref, r)
	if err != nil {
		return err
	}
	if out.IsData() {
		return output.Data(a.Stdout, out, t)
	}
	a.Warn("token %s of the sandbox %s, with %s; keep it, it is never shown again", t.Name, t.SandboxID, strings.Join(t.Scopes, ", "))
	_, err = fmt.Fprintln(a.Stdout, t.Secret)
	return err
}

func newTokenLs(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List tokens, without their secrets", Args: app.Takes(0, 0)}
	project := c.Flags().String("project", "", "only those of this project")
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		tokens, err := cl.Tokens(c.Context(), *project)
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, tokens, func(t v1.Token) string { return t.ID }, output.Columns[v1.Token]{
			Head: []string{"NAME", "ID", "PROJECT", "SCOPES", "CREATED", "USED", "EXPIRES"},
			Row: func(t v1.Token, now time.Time) []string {
				used, expires := "never", "never"
				if t.LastUsedAt != nil {
					used = output.Ago(now, t.LastUsedAt)
				}
				if t.ExpiresAt != nil {
					expires = output.Ago(now, t.ExpiresAt)
				}
				return []string{t.Name, t.ID, t.Project, strings.Join(t.Scopes, ","), output.Ago(now, &t.CreatedAt), used, expires}
			},
			Called: func(t v1.Token) string { return t.Name },
		})
	}
	return c
}

func newTokenRotate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rotate [flags] {TOKEN | --sandbox SANDBOX}",
		Short: "Give a token another secret and print it; or end all tokens of a sandbox",
		Long: `Give a token, by its id or its name, another secret and print it: it is never shown again. The secret before it stays
valid for the grace, so that programs can be given the new one meanwhile, and then ends with what it holds open. Both are
the same token, with one name and one last use, and sandpit token rm ends both at once.

With --sandbox all tokens that are good for that sandbox alone end at once, with what they have open.`,
		Example: `  sandpit token rotate claude
  sandpit token rotate claude --grace 0     # the old one has leaked
  sandpit token rotate --sandbox web`,
		Args: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("sandbox") {
				return app.Takes(0, 0)(c, args)
			}
			return app.Takes(1, 1)(c, args)
		},
		ValidArgsFunction: a.CompleteTokens,
	}
	var grace flags.Period
	f := c.Flags()
	project := f.String("project", "", "whose token it is, where a name alone is not clear")
	box := f.String("sandbox", "", "end all tokens of this `SANDBOX`")
	_ = c.RegisterFlagCompletionFunc("sandbox", a.CompleteAll)
	f.Var(&grace, "grace", "how long the old secret stays valid, at most 30d; 0: it ends at once (default: 1h)")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		if f.Changed("sandbox") {
			if f.Changed("project") || f.Changed("grace") {
				return exit.Misuse(c, "--sandbox goes with neither --project nor --grace: its tokens end at once")
			}
			if err := cl.RotateSandboxTokens(c.Context(), *box); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, output.Printable(*box))
			return nil
		}
		t, err := cl.RotateToken(c.Context(), *project, args[0], v1.RotateToken{GraceSeconds: grace.Seconds()})
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, t)
		}
		old := "the old secret has ended"
		if t.OldUntil != nil {
			old = "the old secret is valid until " + t.OldUntil.UTC().Format(time.RFC3339)
		}
		a.Warn("token %s of project %s is rotated, and %s; keep the new one, it is never shown again", t.Name, t.Project, old)
		_, err = fmt.Fprintln(a.Stdout, t.Secret)
		return err
	}
	return c
}

func newTokenRm(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "rm [flags] TOKEN...", Short: "End tokens, by id or name", Args: app.Takes(1, -1), ValidArgsFunction: a.CompleteTokens}
	project := c.Flags().String("project", "", "whose token it is, where a name alone is not clear")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		for _, t := range args {
			if err := cl.DeleteToken(c.Context(), *project, t); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, output.Printable(t))
		}
		return nil
	}
	return c
}
