// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// travelled is one sandbox. The goroutine that has taken it may use the rest.
type travelled struct {
	id         string
	autoResume bool
	taken      bool // guarded by travel.mu
	fills      bool // it fills disks

	status  []string // that it may have
	worlds  worlds
	lines   int   // that its log has at least, in every world
	writer  state // whether the process that writes the log is there
	kept    map[string]*keptDisk
	forking int  // how many forks were asked for without an answer
	leaving bool // a delete was asked for, and may have happened or not
}

// state is what a caller knows of something.
type state int

const (
	no state = iota
	yes
	unknown
)

// keptDisk is a snapshot.
type keptDisk struct {
	worlds  worlds
	lines   int
	sure    bool // it was answered for
	leaving bool
}

// choose picks a verb that the sandbox's state allows. There is one state: who
// does not know it looks first, see reconcile.
func (b *travelled) choose() string {
	verbs := []string{"snapshot", "rollback", "rollback", "fork", "reset", "delete", "drop"}
	switch b.status[0] {
	case "running":
		verbs = append(verbs, "write", "write", "write", "write", "exec", "exec", "exec", "exec", "pause", "pause", "stop", "look", "look", "snapshot")
	case "paused":
		verbs = append(verbs, "resume", "resume", "resume", "resume", "stop", "snapshot")
		if b.autoResume {
			verbs = append(verbs, "write", "exec")
		}
	case "stopped":
		verbs = append(verbs, "start", "start", "start", "start", "start", "snapshot")
	}
	if b.fills && b.status[0] == "running" {
		verbs = append(verbs, "fill", "fill", "fill", "fill", "free", "free")
	}
	verb := verbs[rand.IntN(len(verbs))]
	switch {
	case (verb == "rollback" || verb == "drop") && len(b.kept) == 0, verb == "snapshot" && len(b.kept) >= mostKept:
		if len(b.kept) == 0 {
			return "snapshot"
		}
		return "drop"
	case (verb == "reset" || verb == "delete") && rand.IntN(3) > 0:
		return "fork"
	}
	return verb
}

func newTravelled(box *v1.Sandbox, disks worlds, lines int) *travelled {
	return &travelled{
		id: box.ID, autoResume: box.AutoResume, status: []string{box.Status}, worlds: disks, lines: lines, kept: map[string]*keptDisk{},
	}
}

func (b *travelled) startWriter(ctx context.Context, c *client.Client) error {
	b.writer = unknown
	_, err := c.StartProcess(ctx, b.id, v1.StartProcess{Command: new(logWriter)})
	if err == nil {
		b.writer = yes
	}
	return err
}

// is holds that an answer says what the model does.
func (b *travelled) is(box *v1.Sandbox) error {
	if box.ID != b.id || box.Status != b.status[0] {
		return fmt.Errorf("the answer is about %s, %s; want %s, %s", box.ID, box.Status, b.id, b.status[0])
	}
	return nil
}

// mayWrite is before a write's answer.
func (b *travelled) mayWrite(was, path, content string) {
	if was != "running" {
		b.status = []string{was, "running"} // it goes on by itself
	}
	b.worlds.each(func(d disk) { d.mayHaveWritten(path, sumOf(content)) })
}

func (b *travelled) wrote(path, content string) {
	b.status = []string{"running"}
	b.worlds.each(func(d disk) { d.wrote(path, sumOf(content)) })
}

func (b *travelled) someKept() string {
	names := sortedKeys(b.kept)
	return names[rand.IntN(len(names))]
}

// exchange replaces the sandbox's disk by call, and records what it may hold from then on.
func (b *travelled) exchange(to worlds, lines int, call func() (*v1.Sandbox, error)) error {
	to = to.clone()
	before, least := b.worlds, b.lines
	was, after := b.status[0], "running"
	if was == "stopped" {
		after = was
	}
	b.worlds, b.lines, b.writer = append(slices.Clone(before), to...), min(least, lines), b.writer.doubted()
	b.status = slices.Compact([]string{was, "stopped", "running"})
	if after == was && was == "stopped" {
		b.status = []string{"stopped"}
	}
	box, err := call()
	if err != nil {
		return err
	}
	b.worlds, b.lines, b.writer, b.status = to, lines, no, []string{after}
	return b.is(box)
}

func (s state) doubted() state {
	if s == yes {
		return unknown
	}
	return s
}

// look holds the files of a sandbox that runs against the model.
func (b *travelled) look(ctx context.Context, c *client.Client) error {
	there, lines, err := lookAt(ctx, c, b.id)
	if err != nil {
		return err
	}
	fit, err := b.worlds.narrow(there)
	if err != nil {
		return fmt.Errorf("%s: %w", b.id, err)
	}
	if lines < b.lines {
		return fmt.Errorf("%s: its log has %d lines, and had %d", b.id, lines, b.lines)
	}
	b.worlds, b.lines = fit, lines
	return nil
}

// settle is reconcile for one sandbox.
func (b *travelled) settle(ctx context.Context, c *client.Client, box *v1.Sandbox, forks []*v1.Sandbox, all bool) error {
	if !slices.Contains(b.status, box.Status) {
		return fmt.Errorf("it is %s; want %v", box.Status, b.status)
	}
	b.status, b.leaving = []string{box.Status}, false
	if box.Status == "stopped" {
		b.writer = no
	}
	if len(forks) > 0 && len(forks) != b.forking {
		return fmt.Errorf("%d forks were asked for and not answered, and %d are there", b.forking, len(forks))
	}
	b.forking = 0
	for _, f := range forks {
		// Whether they were made of a snapshot is not known any more.
		disks := b.worlds.clone()
		for _, k := range b.kept {
			disks = append(disks, k.worlds.clone()...)
		}
		if f.Status != "running" {
			return fmt.Errorf("the fork %s is %s", f.ID, f.Status)
		}
		if err := errors.Join(newTravelled(f, disks, 0).look(ctx, c), c.Delete(ctx, f.ID)); err != nil {
			return fmt.Errorf("a fork that was not answered: %w", err)
		}
	}
	if err := b.settleKept(ctx, c, all); err != nil {
		return err
	}
	if b.status[0] != "running" && !all && rand.IntN(2) == 0 {
		return nil
	}
	for call, at := range map[string]func(context.Context, string) (*v1.Sandbox, error){"paused": c.Resume, "stopped": c.Start} {
		if b.status[0] != call {
			continue
		}
		if _, err := at(ctx, b.id); err != nil {
			return err
		}
		b.status = []string{"running"}
		break
	}
	return b.look(ctx, c)
}

// settleKept holds the snapshots against the model.
func (b *travelled) settleKept(ctx context.Context, c *client.Client, all bool) error {
	there := map[string]*v1.Snapshot{}
	for s, err := range c.Snapshots(ctx, client.SnapshotQuery{Sandbox: b.id}) {
		if err != nil {
			return err
		}
		if s.Name == nil || s.Status != "ready" {
			return fmt.Errorf("the snapshot %s is %s after a restart", s.ID, s.Status)
		}
		there[*s.Name] = s
		if b.kept[*s.Name] == nil {
			return fmt.Errorf("the snapshot %s was deleted, and is there", *s.Name)
		}
	}
	for _, name := range sortedKeys(b.kept) {
		k := b.kept[name]
		switch {
		case there[name] == nil && k.sure && !k.leaving:
			return fmt.Errorf("the snapshot %s was answered for, and is gone", name)
		case there[name] == nil:
			delete(b.kept, name)
			continue
		}
		k.sure, k.leaving = true, false
		if !all && rand.IntN(4) > 0 {
			continue
		}
		err := k.look(ctx, c, there[name].ID)
		if b.fills && fault.Is(err, fault.Full) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the snapshot %s: %w", name, err)
		}
	}
	return nil
}

// look holds what is in a snapshot against the model.
func (k *keptDisk) look(ctx context.Context, c *client.Client, id string) error {
	box, _, err := c.Create(ctx, v1.CreateSandbox{FromSnapshot: &id, IdleTimeoutSeconds: new(int64(0))})
	if err != nil {
		return err
	}
	b := newTravelled(box, k.worlds.clone(), k.lines)
	return errors.Join(b.look(ctx, c), c.Delete(ctx, box.ID))
}

// story is what the server has on record of a sandbox, newest first, for people.
func story(ctx context.Context, c *client.Client, id string) string {
	var b strings.Builder
	n := 0
	for e, err := range c.Activity(ctx, id, client.ActivityQuery{}) {
		if n++; err != nil || n > 20 {
			break
		}
		fmt.Fprintf(&b, "  %s %s %s %s %s\n", e.At.Format(time.StampMicro), e.Type, e.Actor, e.Detail, e.Command)
	}
	return b.String()
}
