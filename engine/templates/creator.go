// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// Creator is the engine with templates: it makes sandboxes of them, and keeps their disks. Whoever makes
// sandboxes for callers has one in place of the engine.
type Creator struct {
	*engine.Engine
	Templates *Service
	// Bring has the image of a request here that is elsewhere, if it can; nil: nothing does. What is wrong
	// with the request is the engine's to say.
	Bring func(ctx context.Context, c access.Caller, r *engine.CreateRequest) error
}

// fill completes a request, and has its image brought.
func (e *Creator) fill(ctx context.Context, c access.Caller, r *engine.CreateRequest) error {
	if r.Template != nil && r.Template.ID != "" { // Service.Provide has completed it
		return nil
	}
	if err := e.Templates.Fill(ctx, c, r); err != nil || e.Bring == nil {
		return err
	}
	return e.Bring(ctx, c, r)
}

// Create is [engine.Engine.Create] of what r.Template asks for, or else of what is chosen for the request; what
// the request says itself goes before what a template says. It waits until what the template starts is ready,
// or is not: that the sandbox is there either way is no error, and its record says which it is.
func (e *Creator) Create(ctx context.Context, c access.Caller, r engine.CreateRequest) (*sandbox.Sandbox, bool, error) {
	if err := e.fill(ctx, c, &r); err != nil {
		return nil, false, err
	}
	s, created, err := e.Engine.Create(ctx, c, r)
	if err != nil || s.StartProcess() == "" {
		return s, created, err
	}
	if err := e.Templates.await(ctx, s.ID); err != nil {
		if created && s.Key == "" { // nobody learns its id
			dctx, cancel := core.Aside(ctx)
			defer cancel()
			_ = e.Engine.Delete(dctx, c, string(s.ID)) // else its clocks delete it
		}
		return nil, false, err
	}
	s, err = e.Engine.Get(ctx, c, string(s.ID))
	return s, created, err
}

// CreateExec is [engine.Engine.CreateExec] of what Create makes: the command begins once that is ready, or is
// known not to be.
func (e *Creator) CreateExec(ctx context.Context, c access.Caller, in engine.CreateRequest, r engine.ExecRequest, found func(engine.Place), sink func(sandbox.Frame) error) (engine.Place, engine.ExecResult, error) {
	if err := e.fill(ctx, c, &in); err != nil {
		return engine.Place{}, engine.ExecResult{}, check.Below("sandbox.", err)
	}
	return e.Engine.CreateExec(ctx, c, in, r, func(p engine.Place) {
		_ = e.Templates.await(ctx, p.Sandbox.ID) // its only error is ctx's, which ends the command, too
		if found != nil {
			found(p)
		}
	}, sink)
}

// DeleteSnapshot is [engine.Engine.DeleteSnapshot] of one that is no template's disk.
func (e *Creator) DeleteSnapshot(ctx context.Context, c access.Caller, of, snap string) error {
	found, err := e.Engine.Snapshot(ctx, c, of, snap)
	if fault.Is(err, fault.Denied) { // of who may delete and not read
		return e.Engine.DeleteSnapshot(ctx, c, of, snap)
	}
	if err != nil {
		return err
	}
	give, err := e.Templates.spare(ctx, found)
	if err != nil {
		return err
	}
	defer give()
	return e.Engine.DeleteSnapshot(ctx, c, of, snap)
}

// ArchiveSnapshot is [engine.Engine.ArchiveSnapshot] of one that is no template's disk: what begins with
// a template begins at once.
func (e *Creator) ArchiveSnapshot(ctx context.Context, c access.Caller, of, snap string) (*sandbox.Snapshot, error) {
	found, err := e.Engine.Snapshot(ctx, c, of, snap)
	if fault.Is(err, fault.Denied) {
		return e.Engine.ArchiveSnapshot(ctx, c, of, snap)
	}
	if err != nil {
		return nil, err
	}
	give, err := e.Templates.spare(ctx, found)
	if err != nil {
		return nil, err
	}
	defer give()
	return e.Engine.ArchiveSnapshot(ctx, c, of, snap)
}

// CreateSnapshot is [engine.Engine.CreateSnapshot] in the place of one that is no template's disk.
func (e *Creator) CreateSnapshot(ctx context.Context, c access.Caller, ref string, r engine.SnapshotRequest) (*sandbox.Snapshot, error) {
	if r.Replace {
		if found, err := e.Engine.Snapshot(ctx, c, ref, r.Name); err == nil {
			give, err := e.Templates.spare(ctx, found)
			if err != nil {
				return nil, err
			}
			defer give()
		}
	}
	return e.Engine.CreateSnapshot(ctx, c, ref, r)
}

// spare begins a turn in which a snapshot may be deleted: no template begins with it.
func (s *Service) spare(ctx context.Context, snap *sandbox.Snapshot) (give func(), err error) {
	if give, err = s.disks.Take(ctx, snap.ID); err != nil {
		return nil, err
	}
	var all []*template.Template
	err = s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Templates().OfDisk(snap.ID)
		return err
	})
	if err == nil && len(all) > 0 {
		err = fault.New(fault.Conflict, "the snapshot %s is the disk of the template %s", snap.ID, all[0].Ref()).
			WithRemedy("delete the template first: sandpit template rm %s", all[0].Ref())
	}
	if err != nil {
		give()
		return nil, err
	}
	return give, nil
}

// Fill chooses what a sandbox is made of, and fills in what the request leaves out. Where no template says what to
// start it is what the image has; what is made of a disk starts nothing of its image's.
func (s *Service) Fill(ctx context.Context, c access.Caller, r *engine.CreateRequest) error {
	if err := s.fill(ctx, c, r); err != nil {
		return err
	}
	if r.Template != nil && r.Template.Start.Command == "" && r.From == "" {
		r.Template.Start.Command = s.startOf(r.Image)
	}
	return nil
}

// Command is a program with its arguments as a text for a shell.
func Command(argv []string) string {
	if len(argv) == 3 && argv[0] == "/bin/sh" && argv[1] == "-c" {
		return argv[2]
	}
	text := "exec"
	for _, a := range argv {
		text += " '" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return text
}

func (s *Service) fill(ctx context.Context, c access.Caller, r *engine.CreateRequest) error {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return err
	}
	asked := new(sandbox.Template)
	if r.Template != nil {
		*asked = *r.Template
	}
	explicit := asked.Asked != ""
	if !explicit && (r.Image != "" || r.From != "") {
		r.Template = &sandbox.Template{ChosenBy: sandbox.ChosenExplicitly}
		return nil
	}
	there, err := s.there(ctx, c, r.Key)
	if err != nil {
		return err
	}
	if there != nil && !explicit { // it stays as it is, whatever would be chosen today
		r.Template = nil
		return nil
	}
	t, by, err := s.choose(ctx, c.Project, asked)
	if err != nil {
		return err
	}
	switch {
	case t == nil && explicit: // another spelling of an image
		if r.Image != "" && r.Image != asked.Asked {
			return fault.InvalidFields(
				fault.Field{Name: "image", Message: fmt.Sprintf("%q is not what template says, which is another image's name", sandbox.Clip(r.Image, 80))},
				fault.Field{Name: "template", Message: fmt.Sprintf("%q is no template; send one of them", sandbox.Clip(asked.Asked, 80))})
		}
		if s.o.Resolve != nil {
			if _, err := s.o.Resolve(asked.Asked); fault.Is(err, fault.NotFound) {
				return fault.Wrap(fault.NotFound, err, "there is no template and no image %q", sandbox.Clip(asked.Asked, 80)).WithRemedy("see which there are: sandpit template ls, sandpit image ls")
			}
		}
		r.Image, r.Template = asked.Asked, &sandbox.Template{ChosenBy: sandbox.ChosenExplicitly}
		return nil
	case t == nil:
		r.Template = &sandbox.Template{ChosenBy: sandbox.ChosenByFallback}
		return nil
	case there != nil:
		if there.Template == nil || there.Template.Name != t.Name || there.Template.ID == "" {
			return fault.New(fault.Exists, "the key %q belongs to a sandbox that is not of the template %q", r.Key, t.Name).
				WithRemedy("use another key, leave the template out, or delete the sandbox %s first", there.ID)
		}
		r.Template = nil
		return nil
	}
	return merge(r, t, by)
}

// there returns the sandbox that has a key already; nil if there is none.
func (s *Service) there(ctx context.Context, c access.Caller, key string) (*sandbox.Sandbox, error) {
	if key == "" {
		return nil, nil
	}
	is, err := s.engine.Get(ctx, starter(c.Project), key) // who may create learns of it anyway
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case is.Key != key:
		return nil, nil
	}
	return is, nil
}

// choose returns the template of a request that names no image; nil: none.
func (s *Service) choose(ctx context.Context, project string, asked *sandbox.Template) (t *template.Template, by sandbox.Choice, err error) {
	err = s.engine.Store().View(ctx, func(tx store.Tx) error {
		q := tx.Templates()
		if asked.Asked != "" {
			by = sandbox.ChosenExplicitly
			t, err = find(q, project, asked.Asked)
			if _, version := template.ParseRef(asked.Asked); fault.Is(err, fault.NotFound) && version == 0 && !template.IsID(asked.Asked) {
				t, err = nil, nil
			}
			return err
		}
		if len(asked.Skills) > 0 {
			var k Kept
			if err := s.kept(tx, project, &k); err != nil {
				return err
			}
			by = sandbox.ChosenBySkills
			names := make([]string, 0, len(asked.Skills))
			for _, ref := range asked.Skills {
				if sk, err := tx.Skills().Get(ref); err == nil && sk.Project == project {
					ref = sk.Name
				}
				names = append(names, ref)
			}
			if t = template.BySkills(k.Templates, names); t != nil {
				return nil
			}
		}
		for _, d := range []struct {
			by      sandbox.Choice
			project string
			read    func() (string, error)
		}{
			{sandbox.ChosenByProject, project, func() (string, error) { return q.Default(project) }},
			{sandbox.ChosenByServer, template.Server, func() (string, error) { return s.serverDefault(q) }},
		} {
			name, err := d.read()
			if err != nil {
				return err
			}
			if name == "" {
				continue
			}
			of, err := q.Versions(d.project, name)
			if err != nil {
				return err
			}
			if best := template.Pick(of, 0); best != nil && best.Usable() {
				t, by = best, d.by
				return nil
			}
		}
		return nil
	})
	return t, by, err
}

// merge fills a request in from a template.
func merge(r *engine.CreateRequest, t *template.Template, by sandbox.Choice) error {
	switch t.Status {
	case template.Building:
		return fault.New(fault.State, "the template %s is being built", t.Ref()).WithRemedy("ask again when it is ready: sandpit template show %s", t.Ref())
	case template.Failed:
		return fault.New(fault.State, "the template %s could not be built: %s", t.Ref(), t.Failure.Reason).WithRemedy("see what it wrote: sandpit template show %s; then create another version", t.Ref())
	}
	if err := active(t); err != nil {
		return err
	}
	sp := &t.Spec
	switch {
	case t.Snapshot != "" && r.From != "":
		return fault.InvalidField("from_snapshot", "is given beside the template %s, which has a disk of its own; send one of them", t.Ref())
	case t.Snapshot != "":
		r.From = string(t.Snapshot)
	case r.Image == "" && r.From == "" && t.Image != "":
		r.Image = t.Image
	case r.Image == "" && r.From == "":
		r.Image = sp.Image
	}
	r.Limits = r.Limits.Or(sp.Limits)
	if len(sp.Env) > 0 {
		env := maps.Clone(sp.Env)
		maps.Copy(env, r.Env)
		r.Env = env
	}
	if r.Account == nil && sp.Account != nil {
		a := *sp.Account
		r.Account = &a
	}
	if r.Network == nil && sp.Network != nil {
		p := *sp.Network
		r.Network = &p
	}
	if r.Mounts == nil {
		for _, v := range sp.Volumes {
			r.Mounts = append(r.Mounts, volume.Mount{Volume: v.Volume, Path: v.Path, Sub: v.Sub, ReadOnly: v.ReadOnly})
		}
	}
	r.Template = &sandbox.Template{ID: t.ID, Name: t.Name, Version: t.Version, ChosenBy: by, Start: sp.Start}
	return nil
}
