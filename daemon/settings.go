// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"sandpit.dev/access/project"
	"sandpit.dev/engine"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
	"sandpit.dev/settings"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
)

// values are those of the settings that the configuration has.
func (c *Config) values() settings.Values {
	return settings.Values{
		IdleTimeout: c.Defaults.IdleTimeout, Retention: c.Defaults.Retention, CommandTimeout: c.Defaults.CommandTimeout,
		MaxSandboxes: int64(c.Quotas[project.Sandboxes.String()]), AllowRoot: c.AllowRoot, DefaultImage: c.Images.Default, AllowedImages: c.Images.Allowed, ExactImages: c.Images.Exact,
		AllowedVariables: c.AllowedVariables, MaxNetwork: c.Network.MaxMode, DefaultNetwork: c.Network.Default, MaxPreviews: c.Preview.Max, Pools: true, PoolList: poolTexts(c.Pools),
		LogLevel: levelName(c.Log.Level), LogRequests: c.Log.Requests, LogMCP: c.Log.MCP, LogTools: c.Log.Tools,
	}
}

// note notes that what c has by now, and had not before, comes from a source.
func (c *Config) note(from settings.Source) {
	c.base.Step(c.values(), from)
	c.steps.take(c, from)
}

// NoteFlags is to be called when the command line has changed c, so that settings say where they come from.
func (c *Config) NoteFlags() { c.note(settings.Flag) }

func levelName(l slog.Level) string {
	b, _ := l.MarshalText()
	return strings.ToLower(string(b))
}

// logSwitches say what the log has beside what is wrong. They change while the server runs.
type logSwitches struct {
	level                slog.LevelVar
	requests, mcp, tools atomic.Bool
}

// inForce is what settings are put in force in.
type inForce struct {
	engine *engine.Engine
	images *image.Store
	most   sandbox.Limits
	rules  permit.Rules // what of them is no setting
	config *Config
	quotas *quota.Keeper
	log    *logSwitches
	told   *slog.Logger // set by openSettings
}

// prepare is a [settings.Prepare].
func (f *inForce) prepare(v settings.Values) (apply func(), err error) {
	s, p, err := f.config.engineSettings(v, f.most, f.rules)
	if err != nil {
		return nil, err
	}
	if err := f.images.CheckPolicy(p); err != nil {
		return nil, asSetting(err)
	}
	if _, err := s.Filled(); err != nil {
		return nil, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(v.LogLevel)); err != nil || levelName(level) != v.LogLevel {
		return nil, fault.InvalidField("log_level", "%q is not debug, info, warn or error", sandbox.Clip(v.LogLevel, 20))
	}
	pools, err := f.pools(v.PoolList)
	if err != nil {
		return nil, err
	}
	of, err := project.Parse("quotas", f.config.Quotas)
	if err != nil {
		return nil, err
	}
	of[project.Sandboxes] = float64(v.MaxSandboxes)
	return func() {
		f.quotas.SetNew(of)
		_ = f.images.SetPolicy(p) // it was checked
		if err := f.engine.Set(s); err != nil {
			f.told.Error("the records of sandboxes have another retention than the settings; the next start, or the next change, sets it again", "error", err)
		}
		f.engine.Pools().Enable(v.Pools)
		pools()
		f.log.level.Set(level)
		f.log.requests.Store(v.LogRequests)
		f.log.mcp.Store(v.LogMCP)
		f.log.tools.Store(v.LogTools)
	}, nil
}

// pools checks the setting pools, and returns what puts it in force.
func (f *inForce) pools(texts []string) (replace func(), err error) {
	list, err := parsePools(texts)
	if err != nil {
		return nil, err
	}
	all, err := f.config.poolsOf(list)
	if err != nil {
		return nil, err
	}
	return f.engine.Pools().Prepare(all)
}

// engineSettings is what values are to an engine and its images.
func (c *Config) engineSettings(v settings.Values, most sandbox.Limits, rules permit.Rules) (s defaults.Settings, p image.Policy, err error) {
	p = image.Policy{Default: v.DefaultImage, Allowed: v.AllowedImages, Exact: v.ExactImages}
	if rules.Most, err = maxMode("max_network", v.MaxNetwork); err != nil {
		return s, p, err
	}
	if rules.Default, err = rules.Parse("default_network", v.DefaultNetwork); err != nil {
		return s, p, err
	}
	if v.MaxPreviews != privatePreviews && v.MaxPreviews != publicPreviews {
		return s, p, fault.InvalidField("max_previews", "%q is not private or public", sandbox.Clip(v.MaxPreviews, 20))
	}
	if v.CommandTimeout > defaults.MaxCommandTimeout {
		return s, p, fault.InvalidField("command_timeout_seconds", "%v is more than %v", v.CommandTimeout, defaults.MaxCommandTimeout)
	}
	return defaults.Settings{
		Defaults: defaults.Defaults{
			Limits: c.Limits(), Most: most, IdleTimeout: orNever(v.IdleTimeout), Retention: orNever(v.Retention),
			CommandTimeout: v.CommandTimeout, ForbidRoot: !v.AllowRoot,
		},
		Images: p, Network: rules, Variables: v.AllowedVariables, PublicPreviews: v.MaxPreviews == publicPreviews,
	}, p, defaults.CheckVariables("allowed_variables", v.AllowedVariables)
}

// What the setting max_previews can be.
const (
	privatePreviews = "private"
	publicPreviews  = "public"
)

// asSetting has an error about the configuration speak of the settings.
func asSetting(err error) error {
	names := map[string]string{"images.default": "default_image", "images.allowed": "allowed_images"}
	e := fault.As(err)
	for i, f := range e.Fields {
		if name := names[f.Name]; name != "" {
			return fault.InvalidField(name, "%s", e.Fields[i].Message).WithRemedy("%s", e.Remedy)
		}
	}
	return err
}

// openSettings reads what calls have set, and puts it in force.
func openSettings(ctx context.Context, st store.Store, f *inForce, log *slog.Logger) (*settings.Service, error) {
	f.told = log
	return settings.Open(ctx, st, settings.Options{Base: f.config.base, Configuration: f.config.configured(), Prepare: f.prepare, Logger: log})
}
