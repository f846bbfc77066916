// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// named reports whether env has a variable, in whatever case: npm knows its own in any.
func named(env map[string]string, name string) bool {
	if _, ok := env[name]; ok {
		return true
	}
	for n := range env {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// Prepare sets all variables that a command begins with, which has its own: those of
// the image, over them the sandbox's, over them its secrets, over them its own; and the
// values that its output is not to tell, besides those that it brings. Of a secret that is bound to hosts it gets the
// stand-in, unless the name is taken; so it is with what programs need to know of the network. The root's have no PATH or HOME that the user decides
// about, unless the command's own do.
func (u *Use) Prepare(ctx context.Context, cmd *agent.Command) error {
	if u.e.sudoDiffers(u.l, u.b.record.Load()) { // before the first that may use it
		if err := u.e.tellSudo(ctx, u.b, u.l); err != nil && !fault.Is(err, fault.Unsupported) {
			return err
		}
	}
	set, err := u.e.secrets.Of(ctx, u.b.project, u.b.id)
	if err != nil {
		return err
	}
	if err := u.Place(&cmd.User, &cmd.Cwd); err != nil {
		return err
	}
	env := maps.Clone(u.l.env.Load().Of(cmd.User))
	for _, s := range set.All {
		if !s.Bound() {
			env[s.Name] = s.Value
		}
	}
	maps.Copy(env, cmd.Env)
	for _, s := range set.All {
		if _, taken := env[s.Name]; s.Bound() && !taken {
			env[s.Name] = s.StandIn()
		}
	}
	defaults := []map[string]string{u.l.gate.Variables()}
	if s := u.b.record.Load(); s != nil {
		defaults = append(defaults, hasty(u.e.settings.Load().Network.Bounded(s.Network)))
	}
	for _, of := range defaults {
		for name, v := range of {
			if !named(env, name) {
				env[name] = v
			}
		}
	}
	masked, total := 0, 0
	cmd.Redact = append(slices.Clip(set.Values), cmd.Redact...)
	for _, v := range cmd.Redact {
		masked += len(v)
	}
	if masked > agent.MaxRedactBytes || len(cmd.Redact) > agent.MaxRedact {
		return fault.New(fault.Exhausted, "the sandbox has %d secrets of %d bytes, more than a command can have (%d of %d bytes)",
			len(cmd.Redact), masked, agent.MaxRedact, agent.MaxRedactBytes).
			WithRemedy("delete secrets that it does not need, or give commands large ones as files")
	}
	for n, v := range env {
		total += len(n) + len(v) + len("=\x00")
	}
	if total > agent.MaxEnvBytes || len(env) > agent.MaxEnv {
		return fault.InvalidField("env", "has, with what the sandbox, its secrets and its image set, %d variables of %d bytes, more than %d of %d",
			len(env), total, agent.MaxEnv, agent.MaxEnvBytes)
	}
	cmd.Env = env
	return nil
}

// Place fills in whom a command acts as that does not say, and makes its directory absolute.
func (u *Use) Place(user, dir *string) error {
	a := u.Account()
	asked := *user
	if *user = a.User(asked); asked == "" && *user == sandbox.UserRoot && u.e.settings.Load().ForbidRoot {
		return check.NoRoot()
	}
	*dir = a.Absolute(*dir)
	return nil
}

// Account is that of the sandbox's user.
func (u *Use) Account() sandbox.Account {
	if s := u.b.record.Load(); s != nil {
		return s.Account
	}
	return sandbox.Account{}
}
