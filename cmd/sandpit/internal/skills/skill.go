// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/archive"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/ownskill"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
)

// New returns the group of commands.
func New(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "skill",
		Short: "Keep skills for agents, and install them into sandboxes",
		Long: `Keep skills for agents, and install them into sandboxes. A skill is a directory with a SKILL.md, as
agentskills.io describes them, and the scripts and texts that it speaks of.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newSkillUpload(a), NewLs(a), newSkillShow(a), newSkillInstall(a), newSkillDownload(a), newSkillRm(a), newSkillExport(a))
	return c
}

func newSkillUpload(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "upload [flags] PATH",
		Short: "Keep a skill and print its name",
		Long: `Keep a skill and print its name. PATH is a ZIP archive (.zip, .skill), a SKILL.md, or the directory of a
skill; "-" is standard input. The same skill again is that which is there; another one of its name is refused
without --replace.`,
		Example: `  sandpit skill upload data-analyzer.skill
  sandpit skill upload --replace ./data-analyzer`,
		Args: app.Takes(1, 1),
	}
	replace := c.Flags().Bool("replace", false, "put it in the place of the skill of its name, if there is one")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		data, err := readSkill(a, args[0])
		if err != nil {
			return err
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		k, err := cl.UploadSkill(c.Context(), bytes.NewReader(data), int64(len(data)))
		if fault.Is(err, fault.Exists) && *replace {
			k, err = replaceSkill(c.Context(), a, cl, data, err)
		}
		if err != nil {
			return err
		}
		return output.One(a.Stdout, *out, k, k.Name, k.Name)
	}
	return c
}

// replaceSkill replaces the skill that another one is named like. Which one that is, is in the package, and
// the server, which has read it, says with its name which other there is.
func replaceSkill(ctx context.Context, a *app.App, cl *client.Client, data []byte, taken error) (*v1.Skill, error) {
	all, err := cl.Skills(ctx, "")
	if err != nil {
		return nil, err
	}
	said := fault.As(taken)
	for _, k := range all {
		if strings.Contains(said.Remedy, k.ID) {
			return cl.ReplaceSkill(ctx, k.ID, bytes.NewReader(data), int64(len(data)))
		}
	}
	return nil, taken
}

// maxSkill is the most bytes of a skill that are read here; the server takes no more.
const (
	maxSkill      = 10 << 20
	maxSkillFiles = 100
)

// readSkill reads a skill from a file or from standard input, or packs a directory.
func readSkill(a *app.App, path string) ([]byte, error) {
	var from io.Reader = a.Stdin
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fault.Wrap(fault.NotFound, err, "%s cannot be read", path)
		}
		if info.IsDir() {
			return packSkill(path)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, fault.Wrap(fault.Denied, err, "%s cannot be read", path)
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, maxSkill+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s cannot be read", path)
	}
	if len(data) > maxSkill {
		return nil, skillTooLarge(path)
	}
	return data, nil
}

func skillTooLarge(path string) error {
	return fault.New(fault.TooLarge, "%s has more than %s, or more than %d files; a skill has no more", path, output.Bytes(maxSkill), maxSkillFiles).
		WithRemedy("leave out what an agent can fetch or make by itself")
}

// packSkill makes a ZIP archive of a directory. Hidden files and directories are left out; a link in it is
// refused, as the server would.
func packSkill(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Denied, err, "%s cannot be read", dir)
	}
	defer root.Close()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	files, size := 0, int64(0)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), ".") || d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fault.New(fault.Invalid, "%s is not a file (%s); a skill has files and directories", name, d.Type())
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if files++; files > maxSkillFiles {
			return skillTooLarge(dir)
		}
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(info.Mode().Perm())
		to, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		n, err := io.Copy(to, io.LimitReader(f, maxSkill+1))
		if size += n; size > maxSkill {
			return skillTooLarge(dir)
		}
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if _, told := errors.AsType[*fault.Error](err); err != nil && !told {
		err = fault.Wrap(fault.Denied, err, "%s cannot be read", dir)
	}
	return b.Bytes(), err
}

// NewLs returns the command that lists skills.
func NewLs(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List the skills that the project keeps", Args: app.Takes(0, 0)}
	search := c.Flags().String("search", "", "only those with this in name, description or tags")
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := cl.Skills(c.Context(), *search)
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, found, func(k v1.Skill) string { return k.Name }, output.Columns[v1.Skill]{
			Head: []string{"NAME", "VERSION", "FILES", "SIZE", "CHANGED", "DESCRIPTION"},
			Row: func(k v1.Skill, now time.Time) []string {
				return []string{k.Name, k.Version, strconv.Itoa(len(k.Files)), output.Bytes(k.PackageSizeBytes), output.Ago(now, &k.UpdatedAt), strings.Join(strings.Fields(k.Description), " ")}
			},
		})
	}
	return c
}

func newSkillShow(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "show [flags] SKILL",
		Short:             "Print the SKILL.md of a skill; with -o json all that is known of it",
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteSkills,
	}
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		k, err := cl.Skill(c.Context(), args[0])
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, k)
		}
		text := output.Text(k.SkillMDContent)
		if _, tty := terminal.Of(a.Stdout); tty {
			lines := strings.Split(text, "\n")
			for i := range lines {
				lines[i] = output.Printable(lines[i])
			}
			text = strings.Join(lines, "\n")
		}
		_, err = io.WriteString(a.Stdout, strings.TrimSuffix(text, "\n")+"\n")
		return err
	}
	return c
}

func newSkillInstall(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "install [flags] SANDBOX SKILL...",
		Short: "Install skills into a sandbox, each in /workspace/skills and its name",
		Long: `Install skills into a sandbox, each in /workspace/skills and its name. What is there as it is to be stays;
an earlier package of the same skill is replaced, with what was changed in it.`,
		Example: `  sandpit skill install web data-analyzer pdf`,
		Args:    app.Takes(2, -1),
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return a.CompleteFirst(c, args, word)
		}
		return a.CompleteSkills(c, args, word)
	}
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		got, err := cl.InstallSkills(c.Context(), args[0], args[1:])
		if err != nil {
			return err
		}
		if out.IsData() {
			if err := output.Data(a.Stdout, *out, got); err != nil {
				return err
			}
		} else {
			for _, name := range got.Installed {
				fmt.Fprintln(a.Stdout, name)
			}
			for _, name := range got.AlreadyInstalled {
				a.Warn("%s was there already", output.Printable(name))
			}
		}
		return notInstalled(got)
	}
	return c
}

// notInstalled returns the error for what was not installed.
func notInstalled(got *v1.SkillsInstalled) error {
	var why []string
	for _, ref := range got.NotFound {
		why = append(why, fmt.Sprintf("there is no skill %q", ref))
	}
	for _, f := range got.ExtractionErrors {
		why = append(why, f.Name+": "+f.Error)
	}
	if why == nil {
		return nil
	}
	return fault.New(fault.State, "%s", strings.Join(why, "; ")).WithRemedy("see what there is with: sandpit skill ls")
}

func newSkillDownload(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "download [flags] SKILL [FILE]",
		Short: "Write a skill's package to a file, by default SKILL.skill",
		Long: `Write a skill's package to a file, whole or not at all: a ZIP archive with one directory of the skill's name.
FILE is SKILL.skill if it is left out, and with "-" standard output.`,
		Args:              app.Takes(1, 2),
		ValidArgsFunction: a.CompleteSkills,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		k, err := cl.Skill(ctx, args[0])
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		file := k.Name + ".skill"
		if strings.ContainsAny(k.Name, `/\`) {
			return fault.New(fault.Invalid, "the server names a skill %q, which is no name of a file", k.Name)
		}
		if len(args) > 1 {
			file = args[1]
		}
		if _, tty := terminal.Of(a.Stdout); tty && file == "-" {
			return exit.Misuse(c, "a package is nothing for a terminal; name a file, or pipe it into something")
		}
		r, err := cl.DownloadSkill(ctx, k.ID)
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		defer r.Close()
		return interrupt.Ended(ctx, archive.Receive(ctx, a, r, "download "+k.Name, file))
	}
	return c
}

func newSkillRm(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "rm SKILL...",
		Short:             "Delete skills from the project; where they are installed they stay",
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteSkills,
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.EachName(names, func(name string) error { return cl.DeleteSkill(c.Context(), name) })
	}
	return c
}

func newSkillExport(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write our own skill to DIR/sandpit: how an agent works with sandboxes from a terminal",
		Long: `Write our own skill to DIR/sandpit and print that path: how an agent with a terminal works with sandboxes, with
scripts for a health check, for a command in a sandbox that is deleted afterwards, and for the tests of a
repository, and with examples. It needs no server.`,
		Example: `  sandpit skill export ~/.claude/skills`,
		Args:    app.Takes(1, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		path, err := ownskill.Write(args[0])
		if err == nil {
			_, err = fmt.Fprintln(a.Stdout, output.Printable(path))
		}
		return err
	}
	return c
}
