// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// CompleteTimeout is how long a person at a prompt waits without noticing.
const CompleteTimeout = 500 * time.Millisecond

// CompleteFirst completes the name of a sandbox as the first word.
func (a *App) CompleteFirst(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Refs(c.Context()), cobra.ShellCompDirectiveNoFileComp
}

// CompleteAll completes names of sandboxes, of each one once.
func (a *App) CompleteAll(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, ref := range a.Refs(c.Context()) {
		taken := false
		for _, arg := range args {
			taken = taken || arg == ref
		}
		if !taken {
			out = append(out, ref)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// Refs returns the names of sandboxes; none if the server does not answer soon.
func (a *App) Refs(ctx context.Context) []string {
	return a.Soon(ctx, func(ctx context.Context, cl *client.Client) (out []string, err error) {
		page, err := cl.ListPage(ctx, client.ListQuery{Limit: 100})
		if err != nil {
			return nil, err
		}
		for _, s := range page.Items {
			out = append(out, s.Ref())
		}
		return out, nil
	})
}

// Soon asks the server for names; none if it does not answer in time.
func (a *App) Soon(ctx context.Context, ask func(context.Context, *client.Client) ([]string, error)) []string {
	cl, err := a.Client()
	if err != nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, CompleteTimeout)
	defer cancel()
	out, err := ask(ctx, cl)
	if err != nil {
		return nil
	}
	return out
}

// CompleteSnapshots completes snapshots as the calls that stand by themselves
// take them: SANDBOX/NAME, or the id of one without a name.
func (a *App) CompleteSnapshots(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		page, err := cl.SnapshotsPage(ctx, client.SnapshotQuery{Limit: 100})
		if err != nil {
			return nil, err
		}
		boxes, err := cl.ListPage(ctx, client.ListQuery{Limit: 100})
		if err != nil {
			return nil, err
		}
		refs := make(map[string]string, len(boxes.Items)) // by id; not of those that are gone
		for i := range boxes.Items {
			refs[boxes.Items[i].ID] = boxes.Items[i].Ref()
		}
		for i := range page.Items {
			s := &page.Items[i]
			if s.Name == nil || s.Sandbox == nil || refs[*s.Sandbox] == "" {
				out = append(out, s.ID)
				continue
			}
			out = append(out, refs[*s.Sandbox]+"/"+*s.Name)
		}
		return out, nil
	}), cobra.ShellCompDirectiveNoFileComp
}

// CompletePoint completes points in time of the sandbox that is the first
// argument: the names of its snapshots, the ids of those that have none, and
// words that mean a point of their own.
func (a *App) CompletePoint(words ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) ([]string, error) {
			page, err := cl.SnapshotsPage(ctx, client.SnapshotQuery{Sandbox: args[0], Limit: 100})
			if err != nil {
				return nil, err
			}
			out := slices.Clone(words)
			for i := range page.Items {
				s := &page.Items[i]
				if s.Name == nil {
					s.Name = &s.ID
				}
				out = append(out, *s.Name)
			}
			return out, nil
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteVolumes completes names of volumes.
func (a *App) CompleteVolumes(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		found, err := cl.Volumes(ctx)
		for i := range found {
			out = append(out, found[i].Name)
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}

// CompleteMount completes the volume of a mount.
func (a *App) CompleteMount(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names, _ := a.CompleteVolumes(c, args, word)
	for i := range names {
		names[i] += ":/"
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteImages completes names of images.
func (a *App) CompleteImages(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		found, err := cl.Images(ctx)
		for i := range found {
			out = append(append(out, found[i].Name), found[i].Aliases...)
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}

// CompletePresets completes names for lists of hosts, the last of several with commas between them.
func (a *App) CompletePresets(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		all, err := cl.Presets(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, p := range all.Items {
			out = append(out, before+p.Name)
		}
		return out, nil
	}), cobra.ShellCompDirectiveNoFileComp
}

// CompleteRequests completes ids of what agents asked to reach.
func (a *App) CompleteRequests(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		found, err := cl.NetworkRequests(ctx, "")
		for i := range found {
			out = append(out, found[i].ID)
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}

// CompleteRuns completes ids of runs, the newest first.
func (a *App) CompleteRuns(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		for r, err := range cl.Runs(ctx, client.RunQuery{Limit: 100}) {
			if err != nil || len(out) == 100 {
				return out, err
			}
			if !slices.Contains(args, r.RunID) {
				out = append(out, r.RunID)
			}
		}
		return out, nil
	}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// CompleteTokens completes names of tokens.
func (a *App) CompleteTokens(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		found, err := cl.Tokens(ctx, "")
		for i := range found {
			if !slices.Contains(args, found[i].Name) {
				out = append(out, found[i].Name)
			}
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}

// CompletePath completes the name of a sandbox, then a path in it.
func (a *App) CompletePath(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.CompleteFirst(c, args, typed)
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.pathsInside(c.Context(), args[0], typed, false), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteDirectory completes a directory in the sandbox that is the first argument.
func (a *App) CompleteDirectory(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.pathsInside(c.Context(), args[0], typed, true), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// maxCompleted is how many names of a directory are offered at most.
const maxCompleted = 1000

// pathsInside returns the paths in a sandbox that begin as typed; directories end with a slash. It
// does not start a stopped sandbox. Names with line ends or control characters are left out: a shell
// would read them as other names.
func (a *App) pathsInside(ctx context.Context, ref, typed string, directories bool) []string {
	dir, begin := path.Split(typed)
	return a.Soon(ctx, func(ctx context.Context, cl *client.Client) (out []string, err error) {
		s, err := cl.Get(ctx, ref)
		if err != nil || s.Status != "running" {
			return nil, err
		}
		files, _, err := cl.ListFiles(ctx, ref, cmp.Or(dir, "."), "", maxCompleted)
		for i := range files {
			f := &files[i]
			name := f.Name
			isDir := f.Type == "dir"
			switch {
			case !strings.HasPrefix(name, begin) || output.Printable(name) != name || directories && !isDir:
			case begin == "" && strings.HasPrefix(name, "."):
			case isDir:
				out = append(out, dir+name+"/")
			default:
				out = append(out, dir+name)
			}
		}
		return out, err
	})
}

// CompletePort completes the name of a sandbox, then a port that something listens on there.
func (a *App) CompletePort(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.CompleteFirst(c, args, typed)
	}
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		l, err := cl.Ports(ctx, args[0])
		if err != nil {
			return nil, err
		}
		for _, p := range l.Items {
			if n := strconv.Itoa(p.Port); p.Protocol == "tcp" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		return out, nil
	}), cobra.ShellCompDirectiveNoFileComp
}

// CompleteSkills completes names of skills.
func (a *App) CompleteSkills(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		found, err := cl.Skills(ctx, "")
		for i := range found {
			out = append(out, found[i].Name)
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}
