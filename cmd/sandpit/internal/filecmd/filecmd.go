// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package filecmd has the commands about files in sandboxes, but for cp and watch.
package filecmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// App is what the commands need of the program.
type App struct {
	Client   func() (*client.Client, error)
	Out, Err io.Writer
	Takes    func(least, most int) cobra.PositionalArgs
	Group    func(*cobra.Command, []string) error
	Complete func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) // the sandbox, then a path
}

// New returns the group.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:     "file",
		Aliases: []string{"files"},
		Short:   "List, find, change and share files of sandboxes",
		Long: `List, find, change and share files of sandboxes. Paths are absolute, or relative to /workspace; who acts is the user
sandbox, or with --user root. "sandpit cp" copies files, "sandpit watch" tells of changes.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	for _, one := range []*cobra.Command{a.ls(), a.stat(), a.change(), a.find(), a.search(), a.replace(), a.link()} {
		one.ValidArgsFunction = a.Complete
		c.AddCommand(one)
	}
	return c
}

// run runs a command with a client, until it is interrupted.
func (a App) run(c *cobra.Command, do func(context.Context, *client.Client) error) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context())
	defer stop()
	if err := do(ctx, cl); err != nil {
		return interrupt.Ended(ctx, err)
	}
	return nil
}

func userFlag(c *cobra.Command) *string {
	return c.Flags().StringP("user", "u", "", "act as an account of the sandbox, a name or a number (default its own user)")
}

// place is the second argument, or what stands for it.
func place(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return "."
}

func (a App) ls() *cobra.Command {
	c := &cobra.Command{
		Use:   "ls [flags] SANDBOX [PATH]",
		Short: "List a directory, or a tree to a depth",
		Example: `  sandpit file ls lab src
  sandpit file ls --depth 3 -o json lab | jq -r '.[].path'`,
		Args: a.Takes(1, 2),
	}
	user := userFlag(c)
	depth := c.Flags().Int("depth", 1, "1 to 32: also what is in directories below, as deep")
	after := c.Flags().String("after", "", "only what comes after this name, or path below the directory")
	limit := c.Flags().Int("limit", 0, "most entries, 1 to 100000; default 10000")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			all, more, err := cl.ListTree(ctx, args[0], place(args, 1), *user, *depth, *after, *limit)
			if err != nil {
				return err
			}
			if more {
				fmt.Fprintln(a.Err, "there is more: --limit takes up to 100000, --after the last that is listed")
			}
			return a.files(*out, all, func(f *v1.FileInfo) string {
				if *depth > 1 {
					return f.Path
				}
				return f.Name
			})
		})
	}
	return c
}

// files prints files.
func (a App) files(as output.Format, all []v1.FileInfo, name func(*v1.FileInfo) string) error {
	if as.IsData() {
		return output.Data(a.Out, as, all)
	}
	rows := make([][]string, 0, len(all))
	for i := range all {
		f := &all[i]
		shown := name(f)
		if f.Target != "" {
			shown += " -> " + f.Target
		}
		rows = append(rows, []string{f.Type, f.Mode, owner(f.Owner, f.UID) + ":" + owner(f.Group, f.GID), strconv.FormatInt(f.Size, 10), f.ModifiedAt.Format(time.DateTime), shown})
	}
	return output.Table(a.Out, []string{"TYPE", "MODE", "OWNER", "SIZE", "MODIFIED", "NAME"}, rows)
}

func owner(name string, id int) string {
	if name != "" {
		return name
	}
	return strconv.Itoa(id)
}

func (a App) stat() *cobra.Command {
	c := &cobra.Command{
		Use:     "stat [flags] SANDBOX PATH",
		Short:   "Show all about a file, its attributes included",
		Example: "  sandpit file stat lab report.pdf",
		Args:    a.Takes(2, 2),
	}
	user := userFlag(c)
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			f, err := cl.Stat(ctx, args[0], args[1], *user)
			if err != nil {
				return err
			}
			if out.IsData() {
				return output.Data(a.Out, *out, f)
			}
			return a.one(f)
		})
	}
	return c
}

// one prints all about a file.
func (a App) one(f *v1.FileInfo) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s, %s bytes, mode %s, owner %s (%d), group %s (%d), modified %s\n", output.Printable(f.Path), f.Type, strconv.FormatInt(f.Size, 10), f.Mode,
		output.Printable(owner(f.Owner, f.UID)), f.UID, output.Printable(owner(f.Group, f.GID)), f.GID, f.ModifiedAt.Format(time.RFC3339))
	if f.Type == "symlink" {
		kind := f.TargetType
		if kind == "" {
			kind = "nothing that the user can see"
		}
		fmt.Fprintf(&b, "leads to %s: %s\n", output.Printable(f.Target), kind)
	}
	if f.Version != "" {
		fmt.Fprintf(&b, "version %s\n", output.Printable(f.Version))
	}
	for _, key := range slices.Sorted(maps.Keys(f.Attributes)) {
		fmt.Fprintf(&b, "attribute %s=%s\n", output.Printable(key), output.Printable(f.Attributes[key]))
	}
	_, err := io.WriteString(a.Out, b.String()) // whose parts are printable
	return err
}

func (a App) change() *cobra.Command {
	c := &cobra.Command{
		Use:   "change [flags] SANDBOX PATH",
		Short: "Change a file's mode, owner, group and attributes",
		Long: `Change a file's mode, owner, group and attributes, and with -r those of all in a directory. What is not named stays.

No link is followed: a path that is a link, or leads through one, is refused. Attributes are text that is kept with a
file, 4096 bytes of keys and values in all. To give a file to another user takes --user root.`,
		Example: `  sandpit file change --mode 0755 lab run.sh
  sandpit file change -r --user root --owner sandbox --group sandbox lab /workspace/data
  sandpit file change --attribute source=crawl --remove-attribute draft lab report.pdf`,
		Args: a.Takes(2, 2),
	}
	user := userFlag(c)
	var r v1.ChangeFile
	f := c.Flags()
	mode := f.String("mode", "", "permissions in octal")
	f.StringVar(&r.Owner, "owner", "", "a name of the sandbox's passwd file, or a number")
	f.StringVar(&r.Group, "group", "", "a name of the sandbox's group file, or a number")
	f.BoolVarP(&r.Recursive, "recursive", "r", false, "of a directory: all in it, too")
	set := flags.Pairs{}
	f.Var(set, "attribute", "set KEY=VALUE; may be given again")
	f.StringArrayVar(&r.RemoveAttributes, "remove-attribute", nil, "remove this one; may be given again")
	f.BoolVar(&r.ReplaceAttributes, "replace-attributes", false, "remove all other attributes")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.Changed("mode") {
			r.Mode = mode
		}
		r.Attributes = set.Value()
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			done, err := cl.ChangeFile(ctx, args[0], args[1], *user, r)
			if err != nil {
				return err
			}
			if out.IsData() {
				if err := output.Data(a.Out, *out, done); err != nil {
					return err
				}
			} else if err := a.one(&done.File); err != nil {
				return err
			}
			for _, l := range done.LeftOut {
				fmt.Fprintf(a.Err, "not changed: %s: %s\n", output.Printable(l.Path), output.Printable(l.Reason))
			}
			if done.LeftOutTotal > 0 || done.Ended != "" {
				return fault.New(fault.State, "%d were changed, %d were not%s", done.Changed, done.LeftOutTotal, ended(done.Ended))
			}
			return nil
		})
	}
	return c
}

// ended says why not all was seen.
func ended(why string) string {
	switch why {
	case "":
		return ""
	case "limit":
		return "; there is more: --limit takes up to 10000"
	}
	return "; it ended early, for there is too much (" + why + ")"
}

func (a App) find() *cobra.Command {
	c := &cobra.Command{
		Use:     "find [flags] SANDBOX [PATH]",
		Short:   "Find files and directories by their names",
		Example: "  sandpit file find --glob '*.py' lab src",
		Args:    a.Takes(1, 2),
	}
	var q client.FindQuery
	user := userFlag(c)
	c.Flags().StringVar(&q.Glob, "glob", "", "of names, or with a slash of paths, where ** stands for any directories")
	c.Flags().IntVar(&q.Depth, "depth", 0, "1: only what is in the directory itself; default: all")
	c.Flags().IntVar(&q.Limit, "limit", 0, "most files, 1 to 10000; default 100")
	c.Flags().StringVar(&q.After, "after", "", "only what comes after this path, below the directory")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			q.User = *user
			found, err := cl.FindFiles(ctx, args[0], place(args, 1), q)
			if err != nil {
				return err
			}
			a.partly(found.SearchEnd)
			if out.IsData() {
				return output.Data(a.Out, *out, found)
			}
			return a.files(*out, found.Files, func(f *v1.FileInfo) string { return f.Path })
		})
	}
	return c
}

// partly tells of a search that has not seen all.
func (a App) partly(end v1.SearchEnd) {
	if why := ended(end.Ended); why != "" {
		fmt.Fprintln(a.Err, strings.TrimPrefix(why, "; "))
	}
	if end.Skipped > 0 {
		fmt.Fprintln(a.Err, output.Plural(int(end.Skipped), "entry"), "passed over: binary files, .git, node_modules, and what may not be read")
	}
}

func (a App) search() *cobra.Command {
	c := &cobra.Command{
		Use:     "search [flags] SANDBOX PATTERN [PATH]",
		Aliases: []string{"grep"},
		Short:   "Find lines of text files that match a regular expression",
		Example: `  sandpit file search --glob '*.go' lab 'func \w+\(' src
  sandpit file search -F -i lab 'to do'`,
		Args: a.Takes(2, 3),
	}
	var q client.SearchQuery
	user := userFlag(c)
	c.Flags().BoolVarP(&q.Literal, "literal", "F", false, "the pattern is a text, and no expression")
	c.Flags().BoolVarP(&q.IgnoreCase, "ignore-case", "i", false, "upper and lower case are the same")
	c.Flags().StringVar(&q.Glob, "glob", "", "only files of such names, or with a slash of such paths")
	c.Flags().IntVar(&q.Depth, "depth", 0, "1: only what is in the directory itself; default: all")
	c.Flags().IntVar(&q.Limit, "limit", 0, "most lines, 1 to 10000; default 100")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			q.User = *user
			found, err := cl.SearchFiles(ctx, args[0], place(args, 2), args[1], q)
			if err != nil {
				return err
			}
			a.partly(found.SearchEnd)
			if out.IsData() {
				return output.Data(a.Out, *out, found)
			}
			for _, m := range found.Matches {
				text := m.Text
				if m.Cut {
					text += " …"
				}
				if _, err := fmt.Fprintf(a.Out, "%s:%d: %s\n", output.Printable(m.Path), m.Line, output.Printable(text)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return c
}

func (a App) replace() *cobra.Command {
	c := &cobra.Command{
		Use:   "replace [flags] SANDBOX PATTERN REPLACEMENT PATH...",
		Short: "Replace a text, or what matches a regular expression, in files",
		Long: `Replace a text, or with -e what matches a regular expression (RE2), in files. Each file is replaced whole or stays as
it was; a line says what became of it, and the exit status is 1 if one could not be replaced in.

An expression is held against whole files: (?m) has ^ and $ mean lines. In REPLACEMENT $1 and ${name} are its groups.`,
		Example: `  sandpit file replace lab localhost 0.0.0.0 app.py config.py
  sandpit file replace -e lab '(?m)^version = .*$' 'version = "2"' pyproject.toml`,
		Args: a.Takes(4, -1),
	}
	user := userFlag(c)
	var r v1.ReplaceInFiles
	c.Flags().BoolVarP(&r.Regex, "regex", "e", false, "the pattern is a regular expression")
	c.Flags().BoolVarP(&r.IgnoreCase, "ignore-case", "i", false, "upper and lower case are the same")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			if *user != "" {
				r.User = user
			}
			r.Pattern, r.Replacement, r.Files = args[1], args[2], args[3:]
			done, err := cl.ReplaceInFiles(ctx, args[0], r)
			if err != nil {
				return err
			}
			if out.IsData() {
				err = output.Data(a.Out, *out, done)
			} else {
				err = a.replaced(done)
			}
			if err == nil && done.Failed > 0 {
				err = fault.New(fault.State, "%s could not be replaced in", output.Plural(done.Failed, "file"))
			}
			return err
		})
	}
	return c
}

func (a App) replaced(done *v1.FilesReplaced) error {
	for _, f := range done.Files {
		line := strconv.FormatInt(f.Replacements, 10)
		if f.Error != "" {
			line = output.Printable(f.Error)
		}
		if _, err := fmt.Fprintf(a.Out, "%s: %s\n", output.Printable(f.Path), line); err != nil {
			return err
		}
	}
	return nil
}

func (a App) link() *cobra.Command {
	c := &cobra.Command{
		Use:   "link [flags] SANDBOX PATH",
		Short: "Make a link to one file that needs no token and expires",
		Long: `Make a link to one file that needs no token and expires: to read the file, or with --write to write it by PUT, up to a
size. Whoever has the link can use it, as the user sandbox. It ends with its time or with the sandbox, and is nowhere kept.`,
		Example: `  sandpit file link lab report.pdf
  curl -T data.csv "$(sandpit file link --write --expires 10m --max-size 50M lab data.csv)"`,
		Args: a.Takes(2, 2),
	}
	var r v1.CreateFileLink
	c.Flags().BoolVar(&r.Write, "write", false, "to write the file, and not to read it")
	expires := c.Flags().Duration("expires", 0, "1m to 168h; default 1h")
	most := flags.Megabytes{}
	c.Flags().Var(&most, "max-size", "with --write: the most that the file may have (default 100M)")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.run(c, func(ctx context.Context, cl *client.Client) error {
			r.Path, r.ExpiresSeconds, r.MaxBytes = args[1], int(expires.Seconds()), int64(most.MiB)<<20
			link, err := cl.LinkFile(ctx, args[0], r)
			if err != nil {
				return err
			}
			if out.IsData() {
				return output.Data(a.Out, *out, link)
			}
			fmt.Fprintf(a.Err, "%s, good until %s for whoever has it\n", link.Method, link.ExpiresAt.Format(time.RFC3339))
			_, err = fmt.Fprintln(a.Out, output.Printable(link.URL))
			return err
		})
	}
	return c
}
