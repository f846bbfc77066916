// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Clocks holds the flags for what ends a sandbox when nobody does.
type Clocks struct {
	flags                 *pflag.FlagSet
	Idle, Retention, Ttl  Period
	Archive               Period
	IdleAction, TtlMode   choice
	OnExpiry              choice
	Checkpoints           choice
	AutoDelete, AutoStart bool
	AutoResume            bool
	Sudo                  bool
}

// ClockFlags adds them to c.
func ClockFlags(c *cobra.Command) *Clocks {
	f := c.Flags()
	k := &Clocks{
		flags:      f,
		IdleAction: choice{words: []string{"stop", "pause"}}, TtlMode: choice{words: []string{"absolute", "sliding"}},
		OnExpiry:    choice{words: []string{"delete", "stop", "pause"}},
		Checkpoints: choice{words: []string{"off", "command"}},
	}
	f.Var(&k.Idle, "idle-timeout", "stop it when idle this long (30m); 0: never")
	f.Var(&k.IdleAction, "idle-action", "what to do when it is idle: stop or pause")
	f.Var(&k.Retention, "retention", "delete it when stopped or paused this long (7d); 0: never")
	f.Var(&k.Archive, "archive-after", "archive it when stopped this long (1d); 0: never")
	f.Var(&k.Ttl, "ttl", "delete it this long from now, whatever it does (2h)")
	f.Var(&k.OnExpiry, "on-expiry", "what to do when --ttl is over: delete, stop or pause")
	f.Var(&k.TtlMode, "ttl-mode", "absolute, or sliding: --ttl begins anew whenever it is used")
	f.BoolVar(&k.AutoDelete, "auto-delete", false, "delete it as soon as it stops")
	f.BoolVar(&k.AutoStart, "auto-start", true, "a call starts it when a clock or the host took it down")
	f.BoolVar(&k.AutoResume, "auto-resume", false, "a call resumes it also when somebody paused it")
	f.BoolVar(&k.Sudo, "sudo", false, "its user may use sudo, and so is root in it")
	f.Var(&k.Checkpoints, "checkpoints", "off, or command: a snapshot after each command that changed a file")
	for _, name := range []string{"idle-action", "ttl-mode", "on-expiry", "checkpoints"} {
		words := f.Lookup(name).Value.(*choice).words
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return k
}

func (k *Clocks) Bool(name string, value bool) *bool { return Given(k.flags, name, value) }
