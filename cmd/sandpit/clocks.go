// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// clocks holds the flags for what ends a sandbox when nobody does.
type clocks struct {
	flags                 *pflag.FlagSet
	idle, retention, ttl  period
	idleAction, ttlMode   choice
	checkpoints           choice
	autoDelete, autoStart bool
	autoResume            bool
}

func clockFlags(c *cobra.Command) *clocks {
	f := c.Flags()
	k := &clocks{
		flags:      f,
		idleAction: choice{words: []string{"stop", "pause"}}, ttlMode: choice{words: []string{"absolute", "sliding"}},
		checkpoints: choice{words: []string{"off", "command"}},
	}
	f.Var(&k.idle, "idle-timeout", "stop it when idle this long (30m); 0: never")
	f.Var(&k.idleAction, "idle-action", "what to do when it is idle: stop or pause")
	f.Var(&k.retention, "retention", "delete it when stopped or paused this long (7d); 0: never")
	f.Var(&k.ttl, "ttl", "delete it this long from now, whatever it does (2h)")
	f.Var(&k.ttlMode, "ttl-mode", "absolute, or sliding: --ttl begins anew whenever it is used")
	f.BoolVar(&k.autoDelete, "auto-delete", false, "delete it as soon as it stops")
	f.BoolVar(&k.autoStart, "auto-start", true, "a call starts it when a clock or the host took it down")
	f.BoolVar(&k.autoResume, "auto-resume", false, "a call resumes it also when somebody paused it")
	f.Var(&k.checkpoints, "checkpoints", "off, or command: a snapshot after each command that changed a file")
	for _, name := range []string{"idle-action", "ttl-mode", "checkpoints"} {
		words := f.Lookup(name).Value.(*choice).words
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return k
}

func (k *clocks) bool(name string, value bool) *bool { return given(k.flags, name, value) }

// choice is a flag that is one of a few words.
type choice struct {
	words []string
	word  string
}

func (c *choice) Type() string { return "WORD" }

func (c *choice) String() string { return c.word }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(c.words, ", "))
	}
	c.word = s
	return nil
}

func (c *choice) value() *string {
	if c.word == "" {
		return nil
	}
	return &c.word
}
