// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gitcmd

import (
	"context"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func (a App) init() *cobra.Command {
	c := &cobra.Command{
		Use:     "init [flags] SANDBOX [DIRECTORY]",
		Short:   "Make an empty repository in a sandbox",
		Example: "  sandpit git init lab app --branch main",
		Args:    a.Takes(1, 2),
	}
	var r v1.GitInit
	c.Flags().StringVarP(&r.Branch, "branch", "b", "", "the first branch")
	c.Flags().BoolVar(&r.Bare, "bare", false, "without a working tree")
	c.Flags().StringVar(&r.AsUser, "as-user", "", "an account of the sandbox, a name or a number (default its own user)")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			r.Path = arg(args, 1)
			got, err := cl.GitInit(ctx, args[0], r)
			if err != nil {
				return err
			}
			text := "made a repository, branch " + line(got.Branch)
			if got.Existed {
				text = "the repository was there, branch " + line(got.Branch)
			}
			return output.One(a.Out, *out, got, "", text)
		})
	}
	return c
}

func (a App) add() *cobra.Command {
	c := &cobra.Command{
		Use:     "add [flags] SANDBOX [FILE...]",
		Short:   "Add files to the next commit",
		Long:    "Add files, and what was deleted of them, to the next commit. A FILE is a path as it is, and no pattern; a directory is all that is in it.",
		Example: "  sandpit git add lab -C app --all",
		Args:    a.Takes(1, -1),
	}
	var r v1.GitAdd
	at := where(c)
	c.Flags().BoolVarP(&r.All, "all", "A", false, "all that has changed")
	c.Flags().BoolVarP(&r.Force, "force", "f", false, "also what is ignored")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			r.GitAt, r.Files = *at, args[1:]
			return cl.GitAdd(ctx, args[0], r)
		})
	}
	return c
}

func (a App) commit() *cobra.Command {
	c := &cobra.Command{
		Use:     "commit [flags] SANDBOX",
		Short:   "Make a commit, and print it",
		Long:    "Make a commit, and print it. The repository's hooks run in the sandbox, as where git is typed there.",
		Example: `  sandpit git commit lab -C app -a -m "Say hello"`,
		Args:    a.Takes(1, 1),
	}
	var r v1.GitCommit
	at := where(c)
	f := c.Flags()
	f.StringVarP(&r.Message, "message", "m", "", "what the commit does")
	f.StringVar(&r.Author, "author", "", "the name of the author and committer")
	f.StringVar(&r.Email, "email", "", "goes with --author")
	f.BoolVarP(&r.All, "all", "a", false, "add what has changed of the files that git knows")
	f.BoolVar(&r.Amend, "amend", false, "in the place of the last commit")
	f.BoolVar(&r.AllowEmpty, "allow-empty", false, "also where nothing has changed")
	f.BoolVar(&r.SkipHooks, "skip-hooks", false, "run no hook")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			r.GitAt = *at
			got, err := cl.GitCommit(ctx, args[0], r)
			if err != nil {
				return err
			}
			return output.One(a.Out, *out, got, got.Commit, got.Commit)
		})
	}
	return c
}

func (a App) push() *cobra.Command {
	c := &cobra.Command{
		Use:   "push [flags] SANDBOX [REMOTE [BRANCH]]",
		Short: "Push a branch to a server",
		Long: `Push a branch, or the one that is checked out, to a server. The sandbox has to be allowed to reach it. A password or
a token is told to the server alone, and runs no hook; --url says where it may go, whatever the sandbox's configuration says.`,
		Example: `  pass show token | sandpit git push lab -C app --set-upstream --password-file -`,
		Args:    a.Takes(1, 3),
	}
	var r v1.GitPush
	at, login := where(c), a.asked(c)
	f := c.Flags()
	f.StringVar(&r.URL, "url", "", "the address that the remote has to be at")
	f.StringVar(&r.To, "to", "", "the branch's name at the server")
	f.BoolVarP(&r.SetUpstream, "set-upstream", "u", false, "pull from there from then on")
	f.BoolVarP(&r.Force, "force", "f", false, "whatever the server has")
	f.BoolVarP(&r.Delete, "delete", "d", false, "delete the branch at the server")
	f.BoolVar(&r.Tags, "tags", false, "all tags, too")
	f.BoolVar(&r.SkipHooks, "skip-hooks", false, "run no hook")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) (err error) {
			r.GitAt, r.Remote, r.Branch = *at, arg(args, 1), arg(args, 2)
			if r.GitLogin, err = login(ctx); err != nil {
				return err
			}
			got, err := cl.GitPush(ctx, args[0], r)
			if err != nil {
				return err
			}
			if out.IsData() {
				return output.Data(a.Out, *out, got)
			}
			rows := make([][]string, 0, len(got.Refs))
			for _, x := range got.Refs {
				rows = append(rows, []string{x.Name, x.State, x.Detail})
			}
			return output.Table(a.Out, []string{"NAME", "STATE", "DETAIL"}, rows)
		})
	}
	return c
}

func (a App) pull() *cobra.Command {
	c := &cobra.Command{
		Use:   "pull [flags] SANDBOX [REMOTE [BRANCH]]",
		Short: "Fetch a branch from a server and merge it, and print the commit",
		Long: `Fetch a branch from a server and merge it, and print the commit that is checked out then. Conflicts of a merge stay
in the files; a rebase that conflicts is undone.`,
		Example: `  sandpit git pull lab -C app --mode rebase`,
		Args:    a.Takes(1, 3),
	}
	var r v1.GitPull
	at, login := where(c), a.asked(c)
	c.Flags().StringVar(&r.URL, "url", "", "the address that the remote has to be at")
	c.Flags().StringVar(&r.Mode, "mode", "", "merge (the default), rebase or ff_only")
	c.Flags().BoolVar(&r.SkipHooks, "skip-hooks", false, "run no hook")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) (err error) {
			r.GitAt, r.Remote, r.Branch = *at, arg(args, 1), arg(args, 2)
			if r.GitLogin, err = login(ctx); err != nil {
				return err
			}
			got, err := cl.GitPull(ctx, args[0], r)
			if err != nil {
				return err
			}
			return output.One(a.Out, *out, got, got.Commit, got.Commit)
		})
	}
	return c
}

func (a App) checkout() *cobra.Command {
	c := &cobra.Command{
		Use:     "checkout [flags] SANDBOX TARGET",
		Short:   "Check a branch or a commit out, and print the commit",
		Example: "  sandpit git checkout lab -C app --create topic",
		Args:    a.Takes(2, 2),
	}
	var r v1.GitCheckout
	at := where(c)
	f := c.Flags()
	f.BoolVarP(&r.Create, "create", "b", false, "make the branch")
	f.StringVar(&r.Start, "start", "", "with --create the revision that it starts at")
	f.BoolVar(&r.Detach, "detach", false, "check the commit out, and no branch")
	f.BoolVarP(&r.Force, "force", "f", false, "changes that are in no commit are lost")
	f.BoolVar(&r.SkipHooks, "skip-hooks", false, "run no hook")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			r.GitAt, r.Target = *at, args[1]
			got, err := cl.GitCheckout(ctx, args[0], r)
			if err != nil {
				return err
			}
			return output.One(a.Out, *out, got, got.Commit, got.Commit)
		})
	}
	return c
}

func (a App) reset() *cobra.Command {
	c := &cobra.Command{
		Use:     "reset [flags] SANDBOX [TARGET]",
		Short:   "Put a branch at another commit, or files of the index as they are there",
		Example: "  sandpit git reset lab -C app --mode hard HEAD~1",
		Args:    a.Takes(1, 2),
	}
	var r v1.GitReset
	at := where(c)
	c.Flags().StringVar(&r.Mode, "mode", "", "soft, mixed (the default), hard, merge or keep")
	c.Flags().StringArrayVar(&r.Files, "file", nil, "this in the index, and the branch stays; may be given again")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			r.GitAt, r.Target = *at, arg(args, 1)
			got, err := cl.GitReset(ctx, args[0], r)
			if err != nil {
				return err
			}
			return output.One(a.Out, *out, got, got.Commit, got.Commit)
		})
	}
	return c
}

func (a App) restore() *cobra.Command {
	c := &cobra.Command{
		Use:     "restore [flags] SANDBOX FILE...",
		Short:   "Make files as they were",
		Long:    "Make files as they were in the index or, with --source, in a commit. A FILE is a path as it is, and no pattern.",
		Example: "  sandpit git restore lab -C app main.go",
		Args:    a.Takes(2, -1),
	}
	var r v1.GitRestore
	at := where(c)
	c.Flags().BoolVarP(&r.Staged, "staged", "S", false, "in the index")
	c.Flags().BoolVarP(&r.Worktree, "worktree", "W", false, "in the working tree, as by default without --staged")
	c.Flags().StringVarP(&r.Source, "source", "s", "", "as they are in this revision")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			r.GitAt, r.Files = *at, args[1:]
			return cl.GitRestore(ctx, args[0], r)
		})
	}
	return c
}
