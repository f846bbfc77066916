// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/gitcmd"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

func newGit(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "git",
		Short: "Clone, change and push repositories in sandboxes",
		Args:  cobra.ArbitraryArgs,
		RunE:  app.Group,
	}
	c.AddCommand(newGitClone(a))
	c.AddCommand(gitcmd.New(gitcmd.App{Client: a.Client, Out: a.Stdout, Takes: app.Takes, First: a.CompleteFirst, Secret: func(ctx context.Context, name, variable, file string) (string, error) {
		return secretValue(ctx, a, name, variable, file)
	}})...)
	return c
}

func newGitClone(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "clone [flags] SANDBOX URL [PATH]",
		Short: "Clone a repository into a directory of a sandbox, and print the directory",
		Long: `Clone a repository into a directory of a sandbox, and print the directory. URL is an address by https, http,
ssh or git, or a path inside the sandbox; PATH is below /workspace if it is relative, and the name of the
repository if it is left out. The sandbox has to be allowed to reach the repository's server.

A password or a token is read from a file or from standard input. The repository's server alone is told it;
it is in no record, and not in the repository. Programs that run in the sandbox meanwhile may see it: a secret
that is set for a host (sandpit secret set NAME --host HOST) nothing inside ever sees.`,
		Example: `  sandpit git clone lab https://github.com/octocat/Spoon-Knife
  pass show token | sandpit git clone --password-file - lab https://git.example.org/team/app.git src`,
		Args: app.Takes(2, 3), ValidArgsFunction: a.CompleteFirst,
	}
	var branch, commit, username, file string
	f := c.Flags()
	f.StringVarP(&branch, "branch", "b", "", "this branch or tag")
	f.StringVar(&commit, "commit", "", "check out this commit")
	depth := f.Int("depth", 0, "only so many commits of the history")
	f.StringVar(&username, "username", "", "for a server that asks who it is")
	f.StringVar(&file, "password-file", "", "read the password or token from this file; - is standard input")
	authorities := f.String("ca", "", "a file with authorities for the server's certificate, in PEM")
	insecure := f.Bool("insecure-tls", false, "take any certificate")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		r := v1.GitClone{URL: args[1], GitLogin: v1.GitLogin{Username: given(username), InsecureTLS: *insecure}, Branch: given(branch), Commit: given(commit)}
		if len(args) > 2 {
			r.Path = &args[2]
		}
		if c.Flags().Changed("depth") {
			r.Depth = depth
		}
		if u, err := url.Parse(r.URL); err == nil {
			if _, has := u.User.Password(); has {
				return exit.Misuse(c, "the URL has a password in it, which others on this machine could read; give it by --username and --password-file")
			}
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		if *authorities != "" {
			text, err := os.ReadFile(*authorities)
			if err != nil {
				return fault.Wrap(fault.NotFound, err, "--ca: %s cannot be read", *authorities)
			}
			r.CA = string(text)
		}
		if file != "" {
			if file == "-" {
				file = ""
			} else if _, err := os.Stat(file); err != nil {
				return fault.Wrap(fault.NotFound, err, "%s cannot be read", file)
			}
			password, err := secretValue(ctx, a, "--password-file", "", file)
			if err != nil {
				return interrupt.Ended(ctx, err)
			}
			r.Password = &password
		}
		got, err := cl.GitClone(ctx, args[0], r)
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		return output.One(a.Stdout, *out, got, got.Path, got.Path)
	}
	return c
}

// given returns a text that is not empty, and nil for one that is.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

const repoDir = "repo" // in the workspace

// repository is one that a command is to find in its sandbox.
type repository struct {
	address string
	host    string // empty: it is reached without a network, or git alone knows how
}

// readRepository checks the address of a repository.
func readRepository(address string) (repository, error) {
	r := repository{address: address}
	if address == "" || strings.HasPrefix(address, "-") || strings.ContainsAny(address, "\r\n\x00") {
		return r, fault.InvalidField("--repo", "%q is not the address of a repository", address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return r, nil // a path inside, or what ssh takes
	}
	if _, has := u.User.Password(); has || u.User != nil && (u.Scheme == "https" || u.Scheme == "http") {
		return r, fault.InvalidField("--repo", "has a user or a password in it, which others on this machine could read").
			WithRemedy("leave it out, and set it as a secret for the host, sandpit secret set NAME --host %s; or create a sandbox, and sandpit git clone --username NAME --password-file FILE into it", u.Hostname())
	}
	r.host = u.Hostname()
	return r, nil
}

// reach adds the repository's host to what a new sandbox may reach, unless that says off or everything.
func (r repository) reach(spec *v1.CreateSandbox) {
	if r.host == "" {
		return
	}
	p, ok := spec.Network.(v1.NetworkPolicy)
	if !ok {
		p = v1.NetworkPolicy{Mode: "restricted"}
	}
	if p.Mode != "restricted" {
		return
	}
	if _, err := netip.ParseAddr(r.host); err == nil {
		p.AllowCIDRs = append(slices.Clone(p.AllowCIDRs), r.host)
	} else if !slices.Contains(p.AllowDomains, r.host) {
		p.AllowDomains = append(slices.Clone(p.AllowDomains), r.host)
	}
	spec.Network = p
}

// clone clones the repository into the workspace of a sandbox.
func clone(ctx context.Context, a *app.App, cl *client.Client, id string, r repository) error {
	_, err := cl.GitClone(ctx, id, v1.GitClone{URL: r.address, Path: new(repoDir)})
	if fault.Of(err) != fault.State && fault.Of(err) != fault.Exists && fault.ReasonOf(err) == "" {
		return err
	}
	e := *fault.As(err)
	e.Message = output.Printable(r.address) + " cannot be cloned: " + strings.TrimPrefix(e.Message, "error cloning: ")
	if r.host != "" {
		_ = e.WithRemedy("see what git says; a sandbox reaches what its network allows: --allow-domain NAME, or --network open")
	}
	return &e
}
