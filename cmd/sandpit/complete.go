// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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

// refs gives the names of sandboxes; none if the server does not answer soon.
func (a *app) refs(ctx context.Context) []string {
	cl, err := a.client()
	if err != nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	page, err := cl.ListPage(ctx, client.ListQuery{Limit: 100})
	if err != nil {
		return nil
	}
	var out []string
	for _, s := range page.Items {
		out = append(out, s.Ref())
	}
	return out
}
