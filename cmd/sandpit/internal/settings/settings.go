// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package settings has the commands about what can be set without a restart of the server.
package settings

import (
	"context"
	"encoding/json"
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
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// App is what the commands need of the program.
type App struct {
	Client func() (*client.Client, error)
	Out    io.Writer
	Takes  func(least, most int) cobra.PositionalArgs
	Group  func(*cobra.Command, []string) error
	Soon   func(context.Context, func(context.Context, *client.Client) ([]string, error)) []string
}

// New returns the group of commands.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "settings",
		Short: "Show and change what can be set without a restart of the server",
		Long: `Show and change what can be set without a restart of the server. What "set" sets goes before flags, the
environment and the file, holds at once and after a restart, until "unset" takes it back. It is for the
server's own administrator's token.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	c.AddCommand(a.ls(), a.set(), a.unset(), a.config())
	return c
}

func (a App) ls() *cobra.Command {
	c := &cobra.Command{Use: "ls [flags] [SETTING...]", Aliases: []string{"list", "get"}, Short: "List settings: values, where they come from, what they hold for", Args: a.Takes(0, -1), ValidArgsFunction: a.complete}
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.Settings(c.Context())
		if err != nil {
			return err
		}
		found := all
		if len(names) > 0 {
			found = nil
			for _, n := range names {
				s, err := named(c, all, n)
				if err != nil {
					return err
				}
				found = append(found, s)
			}
		}
		return output.List(a.Out, how, found, func(s v1.Setting) string { return s.Name }, output.Columns[v1.Setting]{
			Head: []string{"SETTING", "VALUE", "FROM", "HOLDS FOR"},
			Row: func(s v1.Setting, _ time.Time) []string {
				holds := "all"
				if s.Holds == "new" {
					holds = "new sandboxes"
				}
				return []string{s.Name, text(s.Value), s.Source, holds}
			},
			WideHead: []string{"OTHERWISE", "CHANGED", "BY", "ABOUT"},
			WideRow: func(s v1.Setting, now time.Time) []string {
				changed := ""
				if s.ChangedAt != nil {
					changed = output.Ago(now, s.ChangedAt)
				}
				return []string{text(s.Otherwise), changed, s.ChangedBy, s.About}
			},
		})
	}
	return c
}

func (a App) config() *cobra.Command {
	c := &cobra.Command{
		Use: "config [flags] [KEY...]", Aliases: []string{"configuration"}, Short: "List what the server was started with: values, where they come from, what needs a restart",
		Long: `List what the server was started with, by the keys of its configuration file: values, where they come from, and
what needs a restart to change. KEY is a key or a section. What is secret is not told.`,
		Example: "  sandpit settings config tls preview.domain", Args: a.Takes(0, -1),
	}
	how := output.ListFlags(c, "keys only")
	c.RunE = func(c *cobra.Command, keys []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.Configuration(c.Context())
		if err != nil {
			return err
		}
		found := all
		if len(keys) > 0 {
			found = nil
		}
		for _, key := range keys {
			before := len(found)
			for _, v := range all {
				if v.Key == key || strings.HasPrefix(v.Key, key+".") {
					found = append(found, v)
				}
			}
			if len(found) == before {
				return exit.Misuse(c, "there is no key or section %q; \"sandpit settings config\" lists them", key)
			}
		}
		return output.List(a.Out, how, found, func(v v1.ConfiguredValue) string { return v.Key }, output.Columns[v1.ConfiguredValue]{
			Head: []string{"KEY", "VALUE", "FROM", "CHANGES"},
			Row: func(v v1.ConfiguredValue, _ time.Time) []string {
				changes := "with a restart"
				if v.Setting != "" {
					changes = "settings set " + v.Setting
				}
				return []string{v.Key, text(v.Value), v.Source, changes}
			},
		})
	}
	return c
}

func (a App) set() *cobra.Command {
	c := &cobra.Command{
		Use:   "set SETTING=VALUE...",
		Short: "Change settings, all of them or none",
		Example: `  sandpit settings set idle_timeout_seconds=1h allowed_images=python,node
  sandpit settings set log_requests=true`,
		Args: a.Takes(1, -1), ValidArgsFunction: a.complete,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.Settings(c.Context())
		if err != nil {
			return err
		}
		to := make(map[string]any, len(args))
		for _, arg := range args {
			name, value, ok := strings.Cut(arg, "=")
			if !ok {
				return exit.Misuse(c, "%q is not SETTING=VALUE", arg)
			}
			s, err := named(c, all, name)
			if err != nil {
				return err
			}
			if to[name], err = parse(s, value); err != nil {
				return exit.Misuse(c, "%s: %v", name, err)
			}
		}
		b, err := json.Marshal(to)
		if err != nil {
			return err
		}
		var r v1.UpdateSettings
		if err := json.Unmarshal(b, &r); err != nil {
			return err
		}
		return a.change(c.Context(), cl, r, slices.Sorted(maps.Keys(to)))
	}
	return c
}

func (a App) unset() *cobra.Command {
	c := &cobra.Command{
		Use:   "unset SETTING...",
		Short: "Take back what was set: the flag, the environment, the file or the default holds again",
		Args:  a.Takes(1, -1), ValidArgsFunction: a.complete,
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.change(c.Context(), cl, v1.UpdateSettings{Unset: names}, names)
	}
	return c
}

// change changes settings, and prints those that it names.
func (a App) change(ctx context.Context, cl *client.Client, to v1.UpdateSettings, names []string) error {
	all, err := cl.UpdateSettings(ctx, to)
	if err != nil {
		return err
	}
	for _, s := range all {
		if slices.Contains(names, s.Name) {
			fmt.Fprintf(a.Out, "%s=%s (%s)\n", s.Name, output.Printable(text(s.Value)), s.Source)
		}
	}
	return nil
}

// parse reads a value of the kind that a setting has.
func parse(s v1.Setting, value string) (any, error) {
	switch s.Value.(type) {
	case bool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("%q is not true or false", value)
		}
		return b, nil
	case float64:
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return n, nil
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of seconds, nor as 90s, 15m or 2h", value)
		}
		return d.Seconds(), nil
	case []any:
		list := []string{}
		for _, e := range strings.Split(value, ",") {
			if e = strings.TrimSpace(e); e != "" {
				list = append(list, e)
			}
		}
		return list, nil
	}
	return value, nil
}

// text writes a value as "set" reads it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		all := make([]string, len(v))
		for i, e := range v {
			all[i] = fmt.Sprint(e)
		}
		return strings.Join(all, ",")
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func named(c *cobra.Command, all []v1.Setting, name string) (v1.Setting, error) {
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return v1.Setting{}, exit.Misuse(c, "there is no setting %q; \"sandpit settings ls\" lists them", name)
}

// complete completes names of settings.
func (a App) complete(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		all, err := cl.Settings(ctx)
		for _, s := range all {
			out = append(out, s.Name)
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}
