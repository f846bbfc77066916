// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
	"sandpit.dev/store"
)

const (
	// MaxInstalls is how many skills one call installs at most.
	MaxInstalls = 50

	// markFile is in the directory of an installed skill, and says which one it is: what is there is
	// taken for the skill only if it is. It is written with the skill's files, before the directory
	// gets its name. Whoever writes one by hand, inside, deceives nobody but that sandbox.
	markFile = ".sandpit-skill.json"
	maxMark  = 4096

	useSkills = "skills" // what counts as activity, in a word for people
)

// mark is what a markFile says.
type mark struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Installed is what became of skills that were to be installed, in the order in which they were asked for.
type Installed struct {
	New     []string // names of those that were put on the disk
	Already []string // names of those that were there, as they are now
	Missing []string // as they were asked for; the project has none of them
	Failed  []Failure
}

// Failure is a skill that could not be installed.
type Failure struct{ ID, Name, Reason string }

// Err returns the error of a caller that wants all of them or none; nil if all are there.
func (i *Installed) Err() error {
	if len(i.Missing) > 0 {
		return fault.InvalidField("skills", "there is no skill %s", quoted(i.Missing)).WithRemedy("list the skills to see which there are")
	}
	if len(i.Failed) > 0 {
		return fault.New(fault.State, "the skill %s cannot be installed: %s", i.Failed[0].Name, i.Failed[0].Reason).
			WithRemedy("put right what it says, and install it into the sandbox then")
	}
	return nil
}

func quoted(refs []string) string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = fmt.Sprintf("%q", sandbox.Clip(r, 80))
	}
	return strings.Join(out, ", ")
}

// wanted reads the skills that are asked for, each once.
func (s *Service) wanted(ctx context.Context, c access.Caller, field string, refs []string) (found []*skill.Skill, missing []string, err error) {
	if len(refs) == 0 {
		return nil, nil, fault.InvalidField(field, "is empty; name the skills to install, by id or by name")
	}
	if len(refs) > MaxInstalls {
		return nil, nil, fault.InvalidField(field, "has %d skills, and at most %d are allowed", len(refs), MaxInstalls).WithRemedy("install them in several calls")
	}
	err = s.engine.Store().View(ctx, func(tx store.Tx) error {
		for _, ref := range refs {
			k, err := find(tx, c.Project, ref)
			switch {
			case fault.Is(err, fault.NotFound):
				if ref = sandbox.Clip(ref, 80); !slices.Contains(missing, ref) {
					missing = append(missing, ref)
				}
			case err != nil:
				return err
			case !slices.ContainsFunc(found, func(o *skill.Skill) bool { return o.ID == k.ID }):
				found = append(found, k)
			}
		}
		return nil
	})
	return found, missing, err
}

// CheckSkills returns fault.Invalid unless the project has all of the skills.
func (s *Service) CheckSkills(ctx context.Context, c access.Caller, refs []string) error {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return err
	}
	_, missing, err := s.wanted(ctx, c, "skills", refs)
	if err != nil {
		return err
	}
	return (&Installed{Missing: missing}).Err()
}

// EquipSandbox installs skills into a sandbox that was just created, or given as it was there already:
// all of them, or the error. A new one that has no key, and that nobody knows therefore, is deleted then.
func (s *Service) EquipSandbox(ctx context.Context, c access.Caller, box *sandbox.Sandbox, created bool, refs []string) (*sandbox.Sandbox, error) {
	got, err := s.InstallSkills(ctx, c, string(box.ID), refs)
	if err == nil {
		err = got.Err()
	}
	if err != nil {
		if created && box.Key == "" {
			dctx, cancel := core.Aside(ctx)
			defer cancel()
			_ = s.engine.Delete(dctx, c, string(box.ID)) // else its clocks delete it
		}
		return nil, err
	}
	return s.engine.Get(ctx, c, string(box.ID))
}

// InstallSkills puts skills into a sandbox, each in the directory of its name below sandbox.Skills. What is
// there already, as it is to be, stays; an earlier package of the same skill is replaced. A skill is
// there whole or not at all, and it is on record once it is there: where the server dies in between, the
// next call finds it. Skills that are unknown or cannot be installed keep no others from it.
func (s *Service) InstallSkills(ctx context.Context, c access.Caller, ref string, refs []string) (*Installed, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	found, missing, err := s.wanted(ctx, c, "skill_ids", refs)
	if err != nil {
		return nil, err
	}
	u, err := s.engine.Use(ctx, c, access.SandboxesWrite, ref, useSkills)
	if err != nil {
		return nil, err
	}
	defer u.End()
	ctx, cancel := s.engine.Bind(ctx)
	defer cancel()
	give, err := s.turns.Take(ctx, u.Sandbox())
	if err != nil {
		return nil, context.Cause(ctx)
	}
	defer give()
	box, err := s.engine.Get(ctx, c, string(u.Sandbox()))
	if err != nil {
		return nil, err
	}
	out := &Installed{Missing: missing}
	for _, k := range found {
		w := &install{s: s, u: u, cl: u.Client(), k: k, dir: path.Join(sandbox.Skills, k.Name)}
		made, err := w.do(ctx, box)
		switch {
		case err != nil && !w.own(ctx, err):
			return nil, u.Fail(ctx, err)
		case err != nil:
			out.Failed = append(out.Failed, Failure{k.ID, k.Name, sandbox.Clip(fault.As(err).Message, 400)})
		case made:
			out.New = append(out.New, k.Name)
		default:
			out.Already = append(out.Already, k.Name)
		}
	}
	return out, nil
}

// install is one skill on its way into a sandbox.
type install struct {
	s   *Service
	u   *engine.Use
	cl  *agent.Client
	k   *skill.Skill
	dir string
}

// own reports whether an error is the skill's own, and others can go on.
func (w *install) own(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	switch fault.Of(err) {
	case fault.Invalid, fault.Denied, fault.NotFound, fault.Exists, fault.Full, fault.TooLarge, fault.Exhausted:
		return true
	}
	return false
}

// do installs the skill, unless it is there. box is the record as it was read last.
func (w *install) do(ctx context.Context, box *sandbox.Sandbox) (made bool, err error) {
	there, err := w.look(ctx)
	if err != nil {
		return false, err
	}
	same := there != nil && there.Digest == w.k.Digest && there.ID == w.k.ID && w.whole(ctx)
	i := slices.IndexFunc(box.Skills, func(o sandbox.Skill) bool { return o.Name == w.k.Name })
	if same && i >= 0 && box.Skills[i].ID == w.k.ID && box.Skills[i].Digest == w.k.Digest {
		return false, nil
	}
	if i < 0 && len(box.Skills) >= sandbox.MaxSkills {
		return false, fault.New(fault.Exhausted, "the sandbox has %d skills, and at most %d are allowed", len(box.Skills), sandbox.MaxSkills)
	}
	if !same {
		if err := w.put(ctx, there != nil); err != nil {
			return false, err
		}
	}
	return !same, w.record(ctx, box, same)
}

// look returns the mark of what has the skill's place, nil if nothing has. What is no skill of ours is an
// error: it is somebody's, and stays.
func (w *install) look(ctx context.Context) (*mark, error) {
	for _, dir := range []string{sandbox.Skills, w.dir} {
		info, err := w.cl.Stat(ctx, dir, sandbox.UserSandbox)
		if fault.Is(err, fault.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if info.Type != sandbox.Directory {
			return nil, fault.New(fault.Invalid, "%s is there, and is no directory (%s)", dir, info.Type)
		}
	}
	notOurs := fault.New(fault.Invalid, "%s is there, and was not installed; move it away first", w.dir)
	at := path.Join(w.dir, markFile)
	info, err := w.cl.Stat(ctx, at, sandbox.UserSandbox)
	if fault.Is(err, fault.NotFound) {
		return nil, notOurs
	}
	if err != nil {
		return nil, err
	}
	if info.Type != sandbox.RegularFile || info.Size > maxMark {
		return nil, notOurs
	}
	_, r, err := w.cl.ReadFile(ctx, at, sandbox.ReadFileOptions{User: sandbox.UserSandbox, Length: maxMark})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxMark))
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	m := new(mark)
	if json.Unmarshal(data, m) != nil || m.Name != w.k.Name {
		return nil, notOurs
	}
	return m, nil
}

// whole reports whether the file that makes the directory a skill is there.
func (w *install) whole(ctx context.Context) bool {
	info, err := w.cl.Stat(ctx, path.Join(w.dir, skill.File), sandbox.UserSandbox)
	return err == nil && info.Type == sandbox.RegularFile
}

// put unpacks the skill beside its place, and moves it there. The archive's names begin below the
// workspace, which is not the sandbox's user's to exchange, so that no link put in the way is followed.
func (w *install) put(ctx context.Context, old bool) error {
	select {
	case w.s.packages <- struct{}{}:
		defer func() { <-w.s.packages }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	pkg, err := w.read(ctx)
	if err != nil {
		return err
	}
	m, err := json.Marshal(mark{w.k.ID, w.k.Name, w.k.Digest})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the mark of a skill cannot be written")
	}
	beside := path.Join(sandbox.Skills, "."+w.k.Name+".new")
	if err := w.remove(ctx, beside); err != nil { // what a call that broke off left
		return err
	}
	r, to := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		below := strings.TrimPrefix(beside, sandbox.Workspace+"/")
		to.CloseWithError(pkg.Tar(to, below, skill.Content{Path: markFile, Data: append(m, '\n')}))
	}()
	sum, err := w.cl.Unpack(ctx, sandbox.Workspace, r, sandbox.UnpackFilesOptions{User: sandbox.UserSandbox, Most: skill.MaxBytes + maxMark})
	_ = r.Close()
	<-packed
	w.s.checkpoint("skill.unpacked")
	if err == nil && (sum.LeftAll > 0 || len(sum.Left) > 0) {
		err = fault.New(fault.Invalid, "a part of it cannot be written")
		if len(sum.Left) > 0 {
			err = fault.New(fault.Invalid, "%s cannot be written: %s", sum.Left[0].Path, sum.Left[0].Reason)
		}
	}
	if err == nil && old {
		err = w.remove(ctx, w.dir)
		w.s.checkpoint("skill.removed")
	}
	if err == nil {
		err = w.cl.Move(ctx, beside, w.dir, sandbox.MoveFileOptions{User: sandbox.UserSandbox})
	}
	if err != nil {
		actx, cancel := core.Aside(ctx)
		defer cancel()
		_ = w.remove(actx, beside) // the next call removes it
	}
	return err
}

// read reads the package. One that was exchanged or deleted a moment ago is another call's.
func (w *install) read(ctx context.Context) (*skill.Package, error) {
	var data []byte
	err := w.s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		data, err = tx.Skills().Package(w.k.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	p, err := skill.Read(data)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the package of the skill %s is not what was kept", w.k.Name)
	}
	if p.Name != w.k.Name || p.Digest() != w.k.Digest {
		return nil, fault.New(fault.Exists, "the skill %s was replaced meanwhile; install it again", w.k.Name)
	}
	return p, nil
}

// remove removes a directory. One that is not there is fine.
func (w *install) remove(ctx context.Context, dir string) error {
	err := w.cl.Remove(ctx, dir, sandbox.RemoveFileOptions{User: sandbox.UserSandbox, Recursive: true})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// record commits that the skill is there, and brings box up to date.
func (w *install) record(ctx context.Context, box *sandbox.Sandbox, was bool) error {
	w.s.checkpoint("skill.there")
	ev := w.u.NewCallEvent(sandbox.EventSkillInstalled)
	ev.Path, ev.User, ev.ProcessID, ev.Detail = w.dir, sandbox.UserSandbox, w.k.ID, w.k.Name
	if was {
		ev.Detail += ", which was there"
	} else {
		ev.Bytes = w.k.Size
	}
	one := sandbox.Skill{ID: w.k.ID, Name: w.k.Name, Digest: w.k.Digest, InstalledAt: ev.At}
	return w.u.RecordChange(ctx, ev, func(s *sandbox.Sandbox) {
		s.Skills = append(slices.DeleteFunc(slices.Clone(s.Skills), func(o sandbox.Skill) bool { return o.Name == one.Name }), one)
		box.Skills = s.Skills
	})
}
