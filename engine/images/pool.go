// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// Pools returns how the pools stand that keep sandboxes of an image, and the one that follows the creates.
func (k *Keeper) Pools(ctx context.Context, c access.Caller, name string) (image string, all []prewarm.PoolInfo, err error) {
	_, leave, err := k.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return "", nil, err
	}
	defer leave()
	return k.poolsOf(name)
}

// AllPools returns how all pools stand.
func (k *Keeper) AllPools(ctx context.Context, c access.Caller) ([]prewarm.PoolInfo, error) {
	_, leave, err := k.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	return k.engine.Pools().Info(), nil
}

func (k *Keeper) poolsOf(name string) (image string, all []prewarm.PoolInfo, err error) {
	entry, err := k.store.Resolve(name)
	if err != nil {
		return "", nil, err
	}
	for _, p := range k.engine.Pools().Info() {
		if p.Recent || p.Image == entry.Name {
			all = append(all, p)
		}
	}
	return entry.Name, all, nil
}

// PoolChange is what shall become of a pool; nil fields stay.
type PoolChange struct {
	Image            string
	Pool             string         // its name; "": the template's, or the image's
	Template         string         // of the server, whose image and limits it keeps; "": those that it has
	Limits           sandbox.Limits // its sandboxes' to begin with, not beside a template; zero fields stay
	Min, Max, Refill *int
}

// ChangePool changes a pool of an image from now on, also of those servers that come after this one; one that
// there is not is made. It is for the server's administrator.
func (k *Keeper) ChangePool(ctx context.Context, c access.Caller, r PoolChange) (image string, all []prewarm.PoolInfo, err error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.ServerAdmin)
	if err != nil {
		return "", nil, err
	}
	defer leave()
	image, all, err = k.poolsOf(r.Image)
	if err != nil {
		return "", nil, err
	}
	if len(r.Pool) > template.MaxName {
		return "", nil, fault.InvalidField("pool", "has %d bytes, and at most %d are allowed", len(r.Pool), template.MaxName)
	}
	p := prewarm.Pool{Name: r.Pool, Image: image, Limits: r.Limits}
	if r.Template != "" {
		if r.Limits != (sandbox.Limits{}) {
			return "", nil, fault.InvalidField("template", "says the limits of the pool of %q; leave them out", sandbox.Clip(r.Template, 80))
		}
		t, err := k.poolTemplate(ctx, image, r.Template)
		if err != nil {
			return "", nil, err
		}
		p.Template, p.Limits = t.Ref(), t.Spec.Limits
		if p.Name == "" {
			p.Name = t.Name
		}
	}
	if p.Name == "" {
		p.Name = image
	}
	for _, is := range k.engine.Pools().Info() {
		if is.Name != p.Name {
			continue
		}
		if !is.Recent && is.Image != image {
			return "", nil, fault.New(fault.Conflict, "the pool %q keeps sandboxes of the image %q", p.Name, is.Image).WithRemedy("give this one another name")
		}
		if r.Template == "" {
			p.Image, p.Limits = is.Pool.Image, r.Limits.Or(is.Limits)
			if p.Limits == is.Limits {
				p.Template = is.Template
			}
			if is.Recent {
				p.Image = ""
			}
		}
		p.Runtime, p.Min, p.Max, p.Refill = is.Runtime, is.Min, is.Max, is.Refill
	}
	for _, f := range []struct{ to, from *int }{{&p.Min, r.Min}, {&p.Max, r.Max}, {&p.Refill, r.Refill}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if r.Max == nil {
		p.Max = max(p.Max, p.Min)
	}
	if r.Min == nil && p.Min > p.Max {
		p.Min = max(p.Max, 0)
	}
	if r.Refill != nil && *r.Refill < 1 {
		return "", nil, fault.InvalidField("refill", "%d is less than 1", *r.Refill)
	}
	p.Off = p.Max == 0
	err = k.engine.Pools().Change(p, func(p prewarm.Pool) error {
		return k.engine.Store().Update(ctx, func(tx store.Tx) error {
			return tx.Pools().Put(store.PoolSize{Name: p.Name, Image: p.Image, Limits: p.Limits, Template: p.Template, Min: p.Min, Max: p.Max, Refill: p.Refill})
		})
	})
	if err != nil {
		return "", nil, err
	}
	return k.poolsOf(image)
}

// poolTemplate finds the server's template that a pool is to keep sandboxes of.
func (k *Keeper) poolTemplate(ctx context.Context, image, ref string) (t *template.Template, err error) {
	err = k.engine.Store().View(ctx, func(tx store.Tx) error {
		name, version := template.ParseRef(ref)
		if template.IsID(ref) {
			if t, err = tx.Templates().Get(ref); err == nil && t.Project != template.Server {
				t = nil
			}
			return err
		}
		all, err := tx.Templates().Versions(template.Server, name)
		t = template.Pick(all, version)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return nil, fault.InvalidField("template", "there is no template %q for all projects, and pools are of all", sandbox.Clip(ref, 80)).
			WithRemedy("make one with server: true, or put it into the configuration")
	}
	entry, err := k.store.Resolve(t.Spec.Image)
	if err != nil {
		return nil, err
	}
	if entry.Name != image {
		return nil, fault.InvalidField("template", "%s is of the image %q, and this is the pool of %q", t.Ref(), entry.Name, image)
	}
	return t, nil
}
