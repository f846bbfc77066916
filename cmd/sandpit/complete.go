// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
)

// completeTimeout is how long a person at a prompt waits without noticing.
const completeTimeout = 500 * time.Millisecond

// completeFirst completes the name of a sandbox as the first word.
func (a *app) completeFirst(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.refs(c.Context()), cobra.ShellCompDirectiveNoFileComp
}

// completeAll completes names of sandboxes, of each one once.
func (a *app) completeAll(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, ref := range a.refs(c.Context()) {
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

// refs returns the names of sandboxes; none if the server does not answer soon.
func (a *app) refs(ctx context.Context) []string {
	return a.soon(ctx, func(ctx context.Context, cl *client.Client) (out []string, err error) {
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

// soon asks the server for names; none if it does not answer in time.
func (a *app) soon(ctx context.Context, ask func(context.Context, *client.Client) ([]string, error)) []string {
	cl, err := a.client()
	if err != nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	out, err := ask(ctx, cl)
	if err != nil {
		return nil
	}
	return out
}

// completeSnapshots completes snapshots as the calls that stand by themselves
// take them: SANDBOX/NAME, or the id of one without a name.
func (a *app) completeSnapshots(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
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

// completePoint completes points in time of the sandbox that is the first
// argument: the names of its snapshots, the ids of those that have none, and
// words that mean a point of their own.
func (a *app) completePoint(words ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		return a.soon(c.Context(), func(ctx context.Context, cl *client.Client) ([]string, error) {
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

// completeVolumes completes names of volumes.
func (a *app) completeVolumes(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		found, err := cl.Volumes(ctx)
		for i := range found {
			out = append(out, found[i].Name)
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}

// completeMount completes the volume of a mount.
func (a *app) completeMount(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names, _ := a.completeVolumes(c, args, word)
	for i := range names {
		names[i] += ":/"
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
