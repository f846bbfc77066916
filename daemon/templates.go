// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/build"
	"sandpit.dev/engine"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// TemplateConfig is a template that all projects have. A change of it is another version.
type TemplateConfig struct {
	Description string            `yaml:"description"`
	Image       string            `yaml:"image"`     // "": the default image
	Size        string            `yaml:"size"`      // one of the sizes; cpu_cores and memory_mb go before it
	CPU         float64           `yaml:"cpu_cores"` // limits that are left out are the defaults'
	MemoryMB    int               `yaml:"memory_mb"`
	DiskMB      int               `yaml:"disk_mb"`
	Pids        int               `yaml:"pids"`
	Env         map[string]string `yaml:"env" secret:"true"`
	Network     string            `yaml:"network"` // off, open, or presets, names and addresses with commas; "": what the create says
	Start       string            `yaml:"start"`   // a command that runs from each start on
	Ready       ReadyConfig       `yaml:"ready"`
	ForSkills   []string          `yaml:"for_skills"` // a create with one of these skills, and no image, gets it
}

// ReadyConfig says when what a template starts is ready. Without a command and a port it is at once.
type ReadyConfig struct {
	Command  string        `yaml:"command"`
	Port     int           `yaml:"port"`
	Interval time.Duration `yaml:"interval"` // 0: 500ms
	Timeout  time.Duration `yaml:"timeout"`  // 0: 1m
}

func (c TemplateConfig) limits() sandbox.Limits {
	return sandbox.Limits{CPU: c.CPU, MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, Pids: c.Pids}
}

// specs returns the templates in the form of those that keep them, who check them.
func (c *Config) specs(rules permit.Rules) (map[string]template.Spec, error) {
	out := make(map[string]template.Spec, len(c.Templates))
	for name, t := range c.Templates {
		limits, err := c.sized("templates."+name, t.Size, t.limits())
		if err != nil {
			return nil, err
		}
		sp := template.Spec{
			Description: t.Description, Image: t.Image, Limits: limits, Env: t.Env, ForSkills: t.ForSkills,
			Start: sandbox.Start{Command: t.Start, Ready: sandbox.Probe{Command: t.Ready.Command, Port: t.Ready.Port, Interval: t.Ready.Interval, Timeout: t.Ready.Timeout}},
		}
		if t.Network != "" {
			p, err := rules.Parse("templates."+name+".network", t.Network)
			if err != nil {
				return nil, err
			}
			sp.Network = &p
		}
		out[name] = sp
	}
	return out, nil
}

// templateImages is what templates begin with.
type templateImages struct {
	*build.Service
	store     *image.Store
	catalogue *images.Catalogue
	brings    *bringer
	keeper    *images.Keeper // which is made of the templates, and set before a server runs
}

func (t *templateImages) Here(ctx context.Context, name string) error {
	_, err := t.store.Find(ctx, name)
	return err
}

func (t *templateImages) Bring(ctx context.Context, c access.Caller, name string) error {
	if err := t.brings.bring(ctx, c, &engine.CreateRequest{Image: name}); err != nil {
		return err
	}
	if _, err := t.store.Resolve(name); err == nil {
		_, err := t.catalogue.BuildImage(ctx, c, name)
		return err
	}
	_, err := t.catalogue.PullImage(ctx, c, name)
	return err
}

func (t *templateImages) Forget(ctx context.Context, digest string) error {
	return t.keeper.Forget(ctx, digest)
}

// newTemplates returns the templates above an engine, whose options have up.
func newTemplates(eng *engine.Engine, cfg *Config, rules permit.Rules, from *templateImages, log *slog.Logger) (*templates.Service, error) {
	specs, err := cfg.specs(rules)
	if err != nil {
		return nil, err
	}
	s := templates.New(eng, templates.Options{
		Resolve: from.store.Resolve, Images: from, Logs: filepath.Join(cfg.Data, "templates"), Network: func(p *sandbox.NetworkPolicy) (sandbox.NetworkPolicy, error) { return eng.Settings().Network.Check(p) }, Configured: specs, Default: cfg.DefaultTemplate, Logger: log,
	})
	return s, s.CheckConfigured()
}

// poolsWith returns the pools of the configuration as calls have changed them, and those that calls made.
func (c *Config) poolsWith(ctx context.Context, st store.Store, images *image.Store, log *slog.Logger) ([]prewarm.Pool, error) {
	all, err := c.pools()
	if err != nil {
		return nil, err
	}
	var sizes []store.PoolSize
	err = st.View(ctx, func(tx store.Tx) (err error) {
		sizes, err = tx.Pools().List()
		return err
	})
	if err != nil {
		return nil, err
	}
	named := func(p prewarm.Pool) string {
		entry, err := images.Resolve(p.Image)
		switch {
		case p.Name != "":
			return p.Name
		case p.Image == "":
			return "recent"
		case err != nil:
			return p.Image
		}
		return entry.Name
	}
	for _, size := range sizes {
		if _, err := images.Resolve(size.Image); err != nil {
			log.Warn("a pool that a call made is left out: its image is gone", "pool", size.Name, "image", size.Image)
			continue
		}
		p := prewarm.Pool{
			Name: size.Name, Image: size.Image, Limits: size.Limits, Template: size.Template,
			Min: size.Min, Max: size.Max, Refill: size.Refill, Off: size.Max == 0, ByCall: true,
		}
		at := slices.IndexFunc(all, func(o prewarm.Pool) bool { return named(o) == size.Name })
		switch {
		case at >= 0:
			all[at] = p
		case len(all) < prewarm.MaxPools:
			all = append(all, p)
		default:
			log.Warn("a pool that a call made is left out: there are too many", "pool", size.Name)
		}
	}
	return all, nil
}

// ofTemplate returns the pool's image and limits where it names a template of the configuration.
func (c *Config) ofTemplate(p PoolConfig) (PoolConfig, error) {
	if p.Template == "" {
		return p, nil
	}
	t, ok := c.Templates[p.Template]
	if !ok {
		return p, fault.InvalidField("pools.template", "there is no template %q in the configuration", sandbox.Clip(p.Template, 80))
	}
	if p.Image != "" && p.Image != t.Image || p.Size != "" || p.limits() != (sandbox.Limits{}) {
		return p, fault.InvalidField("pools.template", "says the image and the limits of the pool of %q; leave them out", sandbox.Clip(p.Template, 80))
	}
	if t.Image == "" {
		return p, fault.InvalidField("pools.template", "%q names no image, and a pool is of one; name it in the template", sandbox.Clip(p.Template, 80))
	}
	p.Image, p.Size, p.CPU, p.MemoryMB, p.DiskMB, p.Pids = t.Image, t.Size, t.CPU, t.MemoryMB, t.DiskMB, t.Pids
	if p.Name == "" {
		p.Name = p.Template
	}
	return p, nil
}
