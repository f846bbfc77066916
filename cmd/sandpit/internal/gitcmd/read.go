// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gitcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func (a App) status() *cobra.Command {
	c := &cobra.Command{
		Use:     "status [flags] SANDBOX",
		Short:   "Show what has changed in a repository",
		Example: "  sandpit git status lab -C app",
		Args:    a.Takes(1, 1),
	}
	q := client.GitStatusQuery{}
	at := where(c)
	c.Flags().StringVar(&q.Untracked, "untracked", "", "files that git does not know: all, normal (a directory stands for them) or no")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			q.GitAt = *at
			s, err := cl.GitStatus(ctx, args[0], q)
			if err != nil {
				return err
			}
			if out.IsData() {
				return output.Data(a.Out, *out, s)
			}
			_, err = fmt.Fprintln(a.Out, statusText(s)) // whose parts are printable
			return err
		})
	}
	return c
}

func statusText(s *v1.GitStatus) string {
	var b strings.Builder
	switch {
	case s.Detached:
		b.WriteString("no branch, commit " + short(s.Commit))
	case s.Commit == "":
		b.WriteString("branch " + line(s.Branch) + ", without a commit")
	default:
		b.WriteString("branch " + line(s.Branch) + ", commit " + short(s.Commit))
	}
	if s.Published {
		fmt.Fprintf(&b, "; %d ahead of %s, %d behind", s.Ahead, line(s.Upstream), s.Behind)
	}
	if s.Clean {
		b.WriteString("\nnothing has changed")
	}
	for _, f := range s.Files {
		fmt.Fprintf(&b, "\n%-12s %-12s %s", f.Index, f.Worktree, line(f.Path))
		if f.From != "" {
			b.WriteString(" (from " + line(f.From) + ")")
		}
	}
	if s.Truncated {
		b.WriteString("\n… and more")
	}
	return b.String()
}

func (a App) log() *cobra.Command {
	c := &cobra.Command{
		Use:     "log [flags] SANDBOX [REVISION]",
		Short:   "Show the commits of a repository, newest first",
		Example: "  sandpit git log lab -C app --limit 5 main",
		Args:    a.Takes(1, 2),
	}
	var q client.GitLogQuery
	at := where(c)
	c.Flags().StringArrayVar(&q.Files, "file", nil, "only commits that changed this; may be given again")
	c.Flags().IntVar(&q.Limit, "limit", 0, "most commits, 1 to 1000; default 20")
	c.Flags().IntVar(&q.Skip, "skip", 0, "pass over as many")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			q.GitAt, q.Revision = *at, arg(args, 1)
			l, err := cl.GitLog(ctx, args[0], q)
			if err != nil {
				return err
			}
			if out.IsData() {
				return output.Data(a.Out, *out, l)
			}
			rows := make([][]string, 0, len(l.Items))
			for _, x := range l.Items {
				when := ""
				if x.Author.At != nil {
					when = x.Author.At.Format("2006-01-02 15:04")
				}
				subject, _, _ := strings.Cut(x.Message, "\n")
				rows = append(rows, []string{short(x.Commit), when, x.Author.Name, subject})
			}
			return output.Table(a.Out, []string{"COMMIT", "AT", "AUTHOR", "SUBJECT"}, rows)
		})
	}
	return c
}

func (a App) branch() *cobra.Command {
	c := &cobra.Command{
		Use:   "branch [flags] SANDBOX [NAME [START]]",
		Short: "List branches, make one, or delete one",
		Long: `List the branches of a repository; with NAME make one, which begins at START or at what is checked out; with
--delete delete it.`,
		Example: `  sandpit git branch lab -C app --remote
  sandpit git branch lab -C app topic main`,
		Args: a.Takes(1, 3),
	}
	at := where(c)
	remote := c.Flags().BoolP("remote", "r", false, "also list what is known of the branches of remotes")
	del := c.Flags().BoolP("delete", "d", false, "delete NAME")
	force := c.Flags().BoolP("force", "f", false, "move a branch that is there; delete one with commits that no other has")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			switch {
			case *del:
				return cl.GitDeleteBranch(ctx, args[0], *at, arg(args, 1), *force)
			case len(args) > 1:
				b, err := cl.GitCreateBranch(ctx, args[0], v1.GitCreateBranch{GitAt: *at, Name: args[1], Start: arg(args, 2), Force: *force})
				if err != nil {
					return err
				}
				return output.One(a.Out, *out, b, b.Name, b.Name)
			}
			l, err := cl.GitBranches(ctx, args[0], *at, *remote)
			if err != nil {
				return err
			}
			if out.IsData() {
				return output.Data(a.Out, *out, l)
			}
			rows := make([][]string, 0, len(l.Items))
			for _, b := range l.Items {
				mark := ""
				if b.Current {
					mark = "*"
				}
				rows = append(rows, []string{mark, b.Name, short(b.Commit), b.Upstream})
			}
			return output.Table(a.Out, []string{"", "NAME", "COMMIT", "UPSTREAM"}, rows)
		})
	}
	return c
}

func (a App) remote() *cobra.Command {
	c := &cobra.Command{
		Use:     "remote [flags] SANDBOX [NAME [URL]]",
		Short:   "List remotes, add one, or remove one",
		Long:    "List the remotes of a repository; with NAME and URL add one; with --remove remove NAME. A URL has no credentials: push and pull take them.",
		Example: "  sandpit git remote lab -C app upstream https://example.org/app.git",
		Args:    a.Takes(1, 3),
	}
	at := where(c)
	remove := c.Flags().Bool("remove", false, "remove NAME")
	overwrite := c.Flags().Bool("overwrite", false, "give a remote that is there this URL")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			switch {
			case *remove:
				return cl.GitRemoveRemote(ctx, args[0], *at, arg(args, 1))
			case len(args) > 1:
				r, err := cl.GitAddRemote(ctx, args[0], v1.GitAddRemote{GitAt: *at, Name: args[1], URL: arg(args, 2), Overwrite: *overwrite})
				if err != nil {
					return err
				}
				return output.One(a.Out, *out, r, r.Name, r.Name)
			}
			l, err := cl.GitRemotes(ctx, args[0], *at)
			if err != nil {
				return err
			}
			if out.IsData() {
				return output.Data(a.Out, *out, l)
			}
			rows := make([][]string, 0, len(l))
			for _, r := range l {
				rows = append(rows, []string{r.Name, r.URL, r.PushURL})
			}
			return output.Table(a.Out, []string{"NAME", "URL", "PUSH URL"}, rows)
		})
	}
	return c
}

func (a App) config() *cobra.Command {
	c := &cobra.Command{
		Use:   "config [flags] SANDBOX KEY [VALUE]",
		Short: "Show, set or remove a value of git's configuration",
		Long: `Show a value of git's configuration; with VALUE set it, with --unset remove it. It is kept in a file inside, and
is no place for credentials.`,
		Example: `  sandpit git config lab --scope global user.name Ann`,
		Args:    a.Takes(2, 3),
	}
	at := where(c)
	var scope string
	c.Flags().StringVar(&scope, "scope", "", "local (the repository's), global (the user's) or system")
	unset := c.Flags().Bool("unset", false, "remove it")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			switch {
			case *unset:
				return cl.GitUnsetConfig(ctx, args[0], *at, args[1], scope)
			case len(args) > 2:
				return cl.GitSetConfig(ctx, args[0], v1.GitSetConfig{GitAt: *at, Key: args[1], Value: args[2], Scope: scope})
			}
			value, err := cl.GitConfig(ctx, args[0], *at, args[1], scope)
			if err != nil {
				return err
			}
			return output.One(a.Out, *out, v1.GitConfig{Key: args[1], Value: value}, "", line(value))
		})
	}
	return c
}
