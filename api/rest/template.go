// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/images"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	engineimages "sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

func (a *API) templates() (service.Templates, error) {
	if a.Templates == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no templates")
	}
	return a.Templates, nil
}

type createTemplate struct{ Body v1.CreateTemplate }

func (a *API) createTemplate(ctx context.Context, c *idempotency.Call, in *createTemplate) (v1.Template, error) {
	s, err := a.templates()
	if err != nil {
		return v1.Template{}, err
	}
	var sp httpapi.Spellings
	r := templateRequest(&sp, &in.Body, a.SizeTable())
	if err := sp.Err(); err != nil {
		return v1.Template{}, err
	}
	t, added, err := s.Create(ctx, c.Caller, r)
	if err == nil && in.Body.Default {
		_, err = s.SetDefault(ctx, c.Caller, t.Name, in.Body.Server, true)
	}
	if err != nil {
		return v1.Template{}, sp.Rename(err)
	}
	switch {
	case t.Status == template.Building:
		c.Status = http.StatusAccepted
	case !added:
		c.Status = http.StatusOK
	}
	c.W.Header().Set("Location", "/v1/templates/"+t.ID)
	return a.oneTemplate(ctx, c, s, t)
}

func templateRequest(sp *httpapi.Spellings, b *v1.CreateTemplate, sizes sandbox.Sizes) templates.Request {
	r := templates.Request{Name: b.Name, Server: b.Server, From: httpapi.Given(b.FromSnapshot), Spec: template.Spec{
		Description: httpapi.Given(b.Description), Image: httpapi.Given(httpapi.Either(sp, "image", b.Image, "base", b.Base)), Env: b.Env, Account: shape.AccountAsked(b.Account, b.User),
		ForSkills: b.ForSkills, Steps: b.Steps, Start: sandbox.Start{Command: httpapi.Given(b.Start)},
	}}
	if b.FromSnapshot != nil && r.From == "" {
		sp.Add("from_snapshot", "is empty; leave it out for an image")
	}
	cpu, memory := size(sp, sizes, b.Size, b.CPUCores, b.MemoryMB)
	r.Spec.Limits = limits(sp, cpu, memory, b.DiskMB, b.Pids)
	r.Spec.Network = networkPolicy(sp, b.Network)
	for _, m := range mounts(sp, b.Volumes) {
		r.Spec.Volumes = append(r.Spec.Volumes, template.Volume{Volume: m.Volume, Path: m.Path, Sub: m.Sub, ReadOnly: m.ReadOnly})
	}
	if p := b.Ready; p != nil {
		ready := &r.Spec.Start.Ready
		ready.Command, ready.Port = p.Command, p.Port
		for _, f := range []struct {
			name string
			from *float64
			to   *time.Duration
		}{{"ready.interval_seconds", p.IntervalSeconds, &ready.Interval}, {"ready.timeout_seconds", p.TimeoutSeconds, &ready.Timeout}} {
			if f.from == nil {
				continue
			}
			if *f.from <= 0 || *f.from > template.MaxReady.Seconds() {
				sp.Add(f.name, "%v is outside 0 to %v", *f.from, template.MaxReady.Seconds())
				continue
			}
			*f.to = time.Duration(*f.from * float64(time.Second)).Round(time.Millisecond)
		}
		if p.Command == "" && p.Port == 0 {
			sp.Add("ready", "has neither a command nor a port to look at")
		}
	}
	return r
}

type listTemplates struct {
	Name *string `query:"name" doc:"only the versions of this name"`
}

func (a *API) listTemplates(ctx context.Context, c *idempotency.Call, in *listTemplates) (v1.TemplateList, error) {
	s, err := a.templates()
	if err != nil {
		return v1.TemplateList{}, err
	}
	k, err := s.List(ctx, c.Caller)
	if err != nil {
		return v1.TemplateList{}, err
	}
	out := v1.TemplateList{Items: []v1.Template{}}
	for _, t := range k.Templates {
		if in.Name == nil || *in.Name == t.Name {
			out.Items = append(out.Items, templateOf(t, k))
		}
	}
	out.Total = len(out.Items)
	return out, nil
}

type byTemplate struct {
	Ref string `path:"template" doc:"the template's name, NAME@VERSION or id; a name is its newest version that is ready"`
}

func (a *API) getTemplate(ctx context.Context, c *idempotency.Call, in *byTemplate) (v1.Template, error) {
	s, err := a.templates()
	if err != nil {
		return v1.Template{}, err
	}
	t, err := s.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.Template{}, err
	}
	return a.oneTemplate(ctx, c, s, t)
}

type deleteTemplate struct {
	Ref string `path:"template" doc:"NAME@VERSION or an id; or a name: all of its versions"`
}

func (a *API) deleteTemplate(ctx context.Context, c *idempotency.Call, in *deleteTemplate) (httpapi.None, error) {
	s, err := a.templates()
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, s.Delete(ctx, c.Caller, in.Ref)
}

type updateTemplate struct {
	Ref  string `path:"template" doc:"the template's name, NAME@VERSION or id"`
	Body v1.UpdateTemplate
}

func (a *API) updateTemplate(ctx context.Context, c *idempotency.Call, in *updateTemplate) (v1.Template, error) {
	s, err := a.templates()
	if err != nil {
		return v1.Template{}, err
	}
	b := &in.Body
	var t *template.Template
	switch {
	case b.Default == nil && b.Inactive == nil:
		return v1.Template{}, fault.InvalidField("default", "is missing, and so is inactive; nothing else of a template can change").WithRemedy("create another version of it")
	case b.Default != nil && b.Inactive != nil:
		return v1.Template{}, fault.InvalidField("inactive", "is given beside default; send one of them")
	case b.Default != nil:
		t, err = s.SetDefault(ctx, c.Caller, in.Ref, b.Server, *b.Default)
	default:
		t, err = s.SetActive(ctx, c.Caller, in.Ref, !*b.Inactive)
	}
	if err != nil {
		return v1.Template{}, err
	}
	return a.oneTemplate(ctx, c, s, t)
}

type templateLog struct {
	Ref    string `path:"template" doc:"the template's name, NAME@VERSION or id"`
	Follow *bool  `query:"follow" doc:"wait for more while a build goes on, until it ends"`
}

// templateLog sends what the build of a template has written.
func (a *API) templateLog(ctx context.Context, c *idempotency.Call, in *templateLog) error {
	s, err := a.templates()
	if err != nil {
		return err
	}
	return c.AnswerLog(ctx, func(ctx context.Context, w io.Writer, flush func() error) error {
		return s.Log(ctx, c.Caller, in.Ref, w, in.Follow != nil && *in.Follow, flush)
	})
}

// oneTemplate is templateOf with the defaults as they are. Who may write and not read sees none.
func (a *API) oneTemplate(ctx context.Context, c *idempotency.Call, s service.Templates, t *template.Template) (v1.Template, error) {
	k, err := s.List(ctx, c.Caller)
	if fault.Is(err, fault.Denied) {
		k, err = &templates.Kept{}, nil
	}
	if err != nil {
		return v1.Template{}, err
	}
	return templateOf(t, k), nil
}

func templateOf(t *template.Template, k *templates.Kept) v1.Template {
	s := &t.Spec
	out := v1.Template{
		ID: t.ID, Name: t.Name, Version: t.Version, Server: t.Project == template.Server, Origin: s.Origin, Status: string(t.Status),
		Inactive: t.Inactive, Description: s.Description, Image: s.Image, ImageDigest: t.Image, Dockerfile: s.Dockerfile, FromSnapshot: string(t.Snapshot), FromSandbox: string(s.Of),
		CPUCores: shape.NumberOrNull(s.Limits.CPU), MemoryMB: shape.NumberOrNull(s.Limits.MemoryMB), DiskMB: shape.NumberOrNull(s.Limits.DiskMB), Pids: shape.NumberOrNull(s.Limits.Pids),
		Env: shape.MapOrEmpty(s.Env), Volumes: []v1.MountVolume{}, Start: s.Start.Command,
		ForSkills: append([]string{}, s.ForSkills...), Steps: append([]string{}, s.Steps...), CreatedAt: t.CreatedAt.UTC(), CreatedBy: t.CreatedBy,
	}
	out.Default = k.ProjectDefault == t.Name && !out.Server || k.ServerDefault == t.Name && out.Server
	if f := t.Failure; f != nil {
		out.Failure = &v1.TemplateFailure{Step: f.Step, Command: f.Command, ExitCode: f.ExitCode, Output: f.Output, Reason: f.Reason}
	}
	if a := s.Account; a != nil {
		out.Account, out.User = new(shape.Account(*a)), a.As
	}
	if s.Network != nil {
		out.Network = new(shape.Policy(*s.Network))
	}
	for _, v := range s.Volumes {
		out.Volumes = append(out.Volumes, v1.MountVolume{Volume: v.Volume, Path: v.Path, SubPath: shape.TextOrNull(v.Sub), ReadOnly: v.ReadOnly})
	}
	if p := s.Start.Ready; !p.None() {
		out.Ready = &v1.ReadyProbe{Command: p.Command, Port: p.Port, IntervalSeconds: new(p.Interval.Seconds()), TimeoutSeconds: new(p.Timeout.Seconds())}
	}
	return out
}

// askTemplate puts into a request what it asks for of a template.
func askTemplate(sp *httpapi.Spellings, r *engine.CreateRequest, b *v1.CreateSandbox) {
	if b.Template == nil && len(b.Skills) == 0 {
		return
	}
	r.Template = &sandbox.Template{Asked: httpapi.Given(b.Template), Skills: b.Skills}
	if b.Template != nil && strings.TrimSpace(*b.Template) == "" {
		sp.Add("template", "is empty; leave it out for the default")
	}
}

type getPool struct {
	Name string `path:"name" doc:"the image's name, or another spelling of it"`
}

func (a *API) getPool(ctx context.Context, c *idempotency.Call, in *getPool) (v1.ImagePools, error) {
	k, err := images.Kept(a.Keeper)
	if err != nil {
		return v1.ImagePools{}, err
	}
	image, all, err := k.Pools(ctx, c.Caller, in.Name)
	return imagePoolsOf(image, all), err
}

type updatePool struct {
	Name string `path:"name" doc:"the image's name, or another spelling of it"`
	Body v1.UpdateImagePool
}

func (a *API) updatePool(ctx context.Context, c *idempotency.Call, in *updatePool) (v1.ImagePools, error) {
	k, err := images.Kept(a.Keeper)
	if err != nil {
		return v1.ImagePools{}, err
	}
	b := &in.Body
	var sp httpapi.Spellings
	cpu, memory := size(&sp, a.SizeTable(), b.Size, b.CPUCores, b.MemoryMB)
	limits := limits(&sp, cpu, memory, b.DiskMB, b.Pids)
	if err := sp.Err(); err != nil {
		return v1.ImagePools{}, err
	}
	if b.Min == nil && b.Max == nil && b.Refill == nil && b.Template == nil && limits == (sandbox.Limits{}) {
		return v1.ImagePools{}, fault.InvalidField("min", "is missing, and so are max, refill, template and all limits: nothing would change")
	}
	image, all, err := k.ChangePool(ctx, c.Caller, engineimages.PoolChange{
		Image: in.Name, Pool: httpapi.Given(b.Pool), Template: httpapi.Given(b.Template), Limits: limits, Min: b.Min, Max: b.Max, Refill: b.Refill,
	})
	return imagePoolsOf(image, all), err
}

func imagePoolsOf(image string, all []prewarm.PoolInfo) v1.ImagePools {
	out := v1.ImagePools{Image: image, Pools: make([]v1.ImagePool, 0, len(all))}
	for _, p := range all {
		out.Ready += p.Images[image]
		out.Pools = append(out.Pools, v1.ImagePool{Pool: poolOf(p), Refill: p.Refill, Template: p.Template, Recent: p.Recent})
	}
	return out
}
