// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package skills keeps the skills of projects, and installs them into sandboxes. It stands above the
// engine, whose uses of a sandbox it begins, and reaches into one through the agent alone, with the
// rights of its ordinary user. It knows no coat.
package skills

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
	"sandpit.dev/store"
)

// Bounds of what a project keeps.
const (
	MaxSkills = 200
	MaxBytes  = 256 << 20 // of all packages together
)

// Service is the verbs. All its methods are safe for concurrent use.
//
// A skill is named by its id, or by its name.
type Service struct {
	engine     *engine.Engine
	checkpoint func(string)
	turns      *core.Turns[sandbox.ID] // of installs into a sandbox
	packages   chan struct{}           // holds one of maxUnpacking for each package that is in memory for an install
}

// maxUnpacking is how many packages are in memory for installs at once, whatever the number of sandboxes.
const maxUnpacking = 4

// Options configure a [Service]. The zero value works.
type Options struct {
	// Checkpoint is called between the steps of an install, with the name of the step before.
	Checkpoint func(name string)
}

// New returns the verbs above an engine.
func New(e *engine.Engine, o Options) *Service {
	if o.Checkpoint == nil {
		o.Checkpoint = func(string) {}
	}
	return &Service{engine: e, turns: core.NewTurns[sandbox.ID](), checkpoint: o.Checkpoint, packages: make(chan struct{}, maxUnpacking)}
}

// AddSkill keeps a skill that comes as a ZIP archive or as the text of a SKILL.md. The same one again is
// that which is there, and added is false; another one of its name is fault.Exists.
func (s *Service) AddSkill(ctx context.Context, c access.Caller, data []byte, from skill.Source) (_ *skill.Skill, added bool, err error) {
	p, pkg, err := s.read(c, data)
	if err != nil {
		return nil, false, err
	}
	at := s.engine.Now()
	k := record(p, pkg, from)
	k.ID, k.Project, k.CreatedAt, k.UpdatedAt, k.CreatedBy = sandbox.NewUUID(), c.Project, at, at, c.Actor
	err = s.engine.Store().Update(ctx, func(tx store.Tx) error {
		is, err := tx.Skills().ByName(c.Project, p.Name)
		switch {
		case err == nil && is.Digest == k.Digest:
			k, added = is, false
			return nil
		case err == nil:
			return fault.New(fault.Exists, "there is a skill named %q already, and it is another one", p.Name).
				WithRemedy("replace it (it has the id %s), delete it, or choose another name", is.ID)
		case !fault.Is(err, fault.NotFound):
			return err
		}
		if err := room(tx, c.Project, 1, k.Size); err != nil {
			return err
		}
		added = true
		if err := tx.Skills().Insert(k, pkg); err != nil {
			return err
		}
		return tx.Events().Append(event(c, sandbox.EventSkill, k))
	})
	if err != nil {
		return nil, false, err
	}
	return k, added, nil
}

// read checks who asks and what comes, and packs it as it is kept.
func (s *Service) read(c access.Caller, data []byte) (p *skill.Package, pkg []byte, err error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, nil, err
	}
	if err := s.engine.Store().Room(); err != nil {
		return nil, nil, err
	}
	if p, err = skill.Read(data); err != nil {
		return nil, nil, err
	}
	pkg, err = p.Zip()
	return p, pkg, err
}

func record(p *skill.Package, pkg []byte, from skill.Source) *skill.Skill {
	return &skill.Skill{Meta: p.Meta, Source: from, Digest: p.Digest(), Size: int64(len(pkg)), Files: p.List(), Text: p.Text()}
}

// room refuses what is more than a project may keep.
func room(tx store.Tx, project string, skills int, bytes int64) error {
	n, size, err := tx.Skills().Usage(project)
	if err != nil {
		return err
	}
	if n+skills > MaxSkills || size+bytes > MaxBytes {
		return fault.New(fault.Exhausted, "the project keeps %d skills of %d bytes; at most %d of %d bytes together are allowed", n, size, MaxSkills, MaxBytes).
			WithRemedy("delete skills that are not needed")
	}
	return nil
}

// event is what is recorded of a change of the library.
func event(c access.Caller, t sandbox.EventType, k *skill.Skill) *sandbox.Event {
	at := k.UpdatedAt
	ev := core.ActorOf(c).Event(t, &sandbox.Sandbox{Project: k.Project}, at)
	ev.ProcessID, ev.Bytes = k.ID, k.Size
	ev.Detail = sandbox.Clip(fmt.Sprintf("%s (%s)", k.Name, k.ID), sandbox.MaxEventDetail)
	return ev
}

// ListSkills returns the project's skills by name, without their text: those that have search, letter case
// ignored, in name, description or tags.
func (s *Service) ListSkills(ctx context.Context, c access.Caller, search string) (out []*skill.Skill, err error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, err
	}
	var all []*skill.Skill
	err = s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Skills().List(c.Project)
		return err
	})
	search = strings.ToLower(search)
	for _, k := range all {
		if strings.Contains(strings.ToLower(k.Name+"\n"+k.Description+"\n"+strings.Join(k.Tags, "\n")), search) {
			out = append(out, k)
		}
	}
	return out, err
}

// Skill returns a skill with its text.
func (s *Service) Skill(ctx context.Context, c access.Caller, ref string) (k *skill.Skill, err error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, err
	}
	err = s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		k, err = find(tx, c.Project, ref)
		return err
	})
	return k, err
}

// SkillPackage returns a skill and its package, a ZIP archive with one directory of its name.
func (s *Service) SkillPackage(ctx context.Context, c access.Caller, ref string) (k *skill.Skill, pkg []byte, err error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, nil, err
	}
	err = s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		if k, err = find(tx, c.Project, ref); err == nil {
			pkg, err = tx.Skills().Package(k.ID)
		}
		return err
	})
	return k, pkg, err
}

// ReplaceSkill puts another package in a skill's place, which has its name. What is installed stays as it
// is until it is installed again.
func (s *Service) ReplaceSkill(ctx context.Context, c access.Caller, ref string, data []byte, from skill.Source) (*skill.Skill, error) {
	p, pkg, err := s.read(c, data)
	if err != nil {
		return nil, err
	}
	k := record(p, pkg, from)
	err = s.engine.Store().Update(ctx, func(tx store.Tx) error {
		is, err := find(tx, c.Project, ref)
		if err != nil {
			return err
		}
		if is.Name != k.Name {
			return fault.InvalidField("skill", "its name is %q, and the skill that it is to replace is %q; a skill keeps its name", k.Name, is.Name).
				WithRemedy("change the name in SKILL.md, or add it as another skill")
		}
		if is.Digest == k.Digest {
			k = is
			return nil
		}
		k.ID, k.Project, k.CreatedAt, k.CreatedBy, k.UpdatedAt = is.ID, is.Project, is.CreatedAt, is.CreatedBy, s.engine.Now()
		if err := room(tx, c.Project, 0, k.Size-is.Size); err != nil {
			return err
		}
		if err := tx.Skills().Replace(k, pkg); err != nil {
			return err
		}
		return tx.Events().Append(event(c, sandbox.EventSkillReplaced, k))
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// DeleteSkill deletes a skill from the project. Where it is installed it stays.
func (s *Service) DeleteSkill(ctx context.Context, c access.Caller, ref string) error {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return err
	}
	return s.engine.Store().Update(ctx, func(tx store.Tx) error {
		k, err := find(tx, c.Project, ref)
		if err != nil {
			return err
		}
		if err := tx.Skills().Delete(k.ID); err != nil {
			return err
		}
		k.UpdatedAt = s.engine.Now()
		return tx.Events().Append(event(c, sandbox.EventSkillDeleted, k))
	})
}

// find returns a skill of a project by its id or its name.
func find(tx store.Tx, project, ref string) (*skill.Skill, error) {
	k, err := tx.Skills().Get(ref)
	if err == nil && k.Project == project {
		return k, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	return tx.Skills().ByName(project, ref)
}
