// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/input"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
)

func newSecret(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "secret",
		Aliases: []string{"secrets"},
		Short:   "Set, list and delete secrets of the project, or of a sandbox",
		Long: `Set, list and delete secrets of the project, or of one sandbox.

A secret is a variable of commands, and is masked in what they print. With --host it never enters a sandbox:
it is put into requests to that host on their way, where the sandbox's network allows them.
Nothing gives a value back.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newSecretSet(a), newSecretLs(a), newSecretRm(a))
	return c
}

// sandboxFlag is whose secrets are meant; "": the project's.
func sandboxFlag(a *app.App, c *cobra.Command) *string {
	ref := c.Flags().String("sandbox", "", "a sandbox's own (default: the project's, which all its sandboxes have)")
	_ = c.RegisterFlagCompletionFunc("sandbox", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.Refs(c.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	return ref
}

func newSecretSet(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "set NAME [flags]",
		Short: "Set a secret; its value comes from standard input, a variable or a file",
		Long: `Set a secret, whether or not it is there. Its value is never an argument, which others on this machine could read:
it is asked for, or comes from standard input, from a variable (--from-env) or from a file (--from-file).
One newline at its end is no part of it.`,
		Example: `  sandpit secret set DATABASE_URL --sandbox web
  sandpit secret set API_KEY --from-env API_KEY --host api.example.org
  pass show key | sandpit secret set KEY --host '*.example.org' --header x-api-key
  sandpit secret set GIT_TOKEN --from-file token --host example.org --format 'token {value}'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				return exit.Misuse(c, "a value is no argument: others on this machine could read it; give it on standard input, or by --from-env or --from-file")
			}
			return app.Takes(1, 1)(c, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var r v1.SetSecret
	var header, format, variable, file string
	f := c.Flags()
	ref := sandboxFlag(a, c)
	f.StringArrayVar(&r.Hosts, "host", nil, "put it into requests to this host, or to all below *.NAME, and into no sandbox; may be given again")
	f.StringVar(&header, "header", "", "the header of requests that takes it; none: it goes nowhere but where a program wrote its stand-in (default: authorization)")
	f.StringVar(&format, "format", "", "what the header says, with {value} in it (default: 'Bearer {value}' in authorization, else {value})")
	f.StringSliceVar(&r.StandInHeaders, "stand-in-header", nil, "a header in which it takes the place of sandpit-secret-NAME, where a program wrote that; may be given again; none: in no header (default: the usual ones for credentials)")
	f.StringVar(&variable, "from-env", "", "take the value from this variable of your own environment")
	f.StringVar(&file, "from-file", "", "take the value from this file")
	_ = c.RegisterFlagCompletionFunc("from-env", cobra.NoFileCompletions)
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if variable != "" && file != "" {
			return exit.Misuse(c, "--from-env and --from-file contradict each other")
		}
		if strings.Contains(args[0], "=") {
			return exit.Misuse(c, "the value is no argument: others on this machine could read it; give it on standard input")
		}
		if slices.Equal(r.StandInHeaders, []string{"none"}) {
			r.StandInHeaders = []string{}
		}
		r.Header, r.Format = flags.Given(f, "header", header), flags.Given(f, "format", format)
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		if r.Value, err = secretValue(ctx, a, args[0], variable, file); err != nil {
			return interrupt.Ended(ctx, err)
		}
		s, err := cl.SetSecret(c.Context(), *ref, args[0], r)
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, s)
		}
		return nil
	}
	return c
}

// secretValue reads a value from where it is said to be: a variable, a file, or standard
// input, which is asked for it without an echo if it is a terminal.
func secretValue(ctx context.Context, a *app.App, name, variable, file string) (string, error) {
	var b []byte
	var err error
	switch {
	case variable != "":
		v := a.Getenv(variable)
		if v == "" {
			return "", fault.InvalidField("--from-env", "the variable %s is not set, or empty", variable)
		}
		return v, nil
	case file != "":
		b, err = input.ReadUpTo(func() (io.ReadCloser, error) { return os.Open(file) })
	case a.Stdin != nil && term.IsTerminal(int(a.Stdin.Fd())):
		b, err = terminal.AskSecret(ctx, a.Stdin, a.Stderr, "value of "+name)
	default:
		b, err = input.ReadUpTo(func() (io.ReadCloser, error) { return io.NopCloser(a.Stdin), nil })
	}
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the value of %s cannot be read: %v", name, err)
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	switch {
	case len(b) == 0:
		return "", fault.New(fault.Invalid, "the value of %s is empty", name).WithRemedy("give it on standard input, or by --from-env or --from-file")
	case !utf8.Valid(b):
		return "", fault.New(fault.Invalid, "the value of %s is not valid UTF-8", name).WithRemedy("encode it (base64), and have the program decode it")
	}
	return string(b), nil
}

func newSecretLs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use: "ls [flags]", Aliases: []string{"list"}, Args: app.Takes(0, 0),
		Short: "List secrets, without their values",
		Long:  "List the project's secrets, or with --sandbox those that hold for it: its own, and its project's where it has none of the name.",
	}
	ref := sandboxFlag(a, c)
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := cl.Secrets(c.Context(), *ref)
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, found, func(s v1.Secret) string { return s.Name }, output.Columns[v1.Secret]{
			Head: []string{"NAME", "OF", "WHERE", "HEADER", "SET"},
			Row: func(s v1.Secret, now time.Time) []string {
				where, of := "variable", "project"
				if len(s.Hosts) > 0 {
					where = strings.Join(s.Hosts, ",")
				}
				if s.SandboxID != nil {
					of = *s.SandboxID
				}
				return []string{s.Name, of, where, s.Header, output.Ago(now, &s.UpdatedAt)}
			},
		})
	}
	return c
}

func newSecretRm(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rm NAME... [flags]",
		Short: "Delete secrets; what runs keeps what it was given",
		Args:  app.Takes(1, -1),
	}
	ref := sandboxFlag(a, c)
	c.ValidArgsFunction = func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
			found, err := cl.Secrets(ctx, *ref)
			for i := range found {
				out = append(out, found[i].Name)
			}
			return out, err
		}), cobra.ShellCompDirectiveNoFileComp
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.EachName(names, func(name string) error { return cl.DeleteSecret(c.Context(), *ref, name) })
	}
	return c
}
