// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "sandpit.dev/api/v1"
)

// DockerDisks is pauses and disks of sandboxes on an Engine, beside the native runtime's and the Engine's own.
type DockerDisks struct {
	Sizes []DockerDisk `json:"sizes"`
}

// DockerDisk is one workspace. Of the Engine itself a snapshot is a commit, and a fork a commit and a container of it that is started; it
// has nothing like a rollback.
type DockerDisk struct {
	Files    int      `json:"files"`
	Pause    Compared `json:"pause"`
	Resume   Compared `json:"resume"`
	Snapshot Compared `json:"snapshot"`
	Rollback Compared `json:"rollback"` // until it runs again
	Fork     Compared `json:"fork"`     // until the fork runs
}

// dockerDiskSizes are the workspaces that are measured, in files.
func dockerDiskSizes() []int { return []int{10, 10_000} }

func (s *session) dockerDisks(ctx context.Context, e *engine, sizes []int) (_ *DockerDisks, err error) {
	us, err := s.startDockerServer(ctx, e, "disks", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, us.close(ctx)) }()
	r := new(DockerDisks)
	for _, files := range sizes {
		d := DockerDisk{Files: files}
		if err := s.dockerDisk(ctx, e, us.ours, &d); err != nil {
			return nil, fmt.Errorf("a workspace of %d files: %w", files, err)
		}
		r.Sizes = append(r.Sizes, d)
	}
	return r, nil
}

// diskOf is a sandbox whose disk is measured, with a snapshot to go back to.
type diskOf struct {
	*ours
	ref, point string
}

// withDisk makes a sandbox with so many files for fn.
func (o *ours) withDisk(ctx context.Context, files int, fn func(d diskOf) error) error {
	return o.with(ctx, v1.CreateSandbox{}, func(ref string) (err error) {
		if err := o.grow(ctx, ref, files); err != nil {
			return err
		}
		point, err := o.client.Snapshot(ctx, ref, v1.CreateSnapshot{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.client.DeleteSnapshot(context.WithoutCancel(ctx), point.ID)) }()
		return fn(diskOf{o, ref, point.ID})
	})
}

func (d diskOf) pause(ctx context.Context) (time.Duration, error) {
	took, err := timedOnce(func() error { _, err := d.client.Pause(ctx, d.ref); return err })
	if err != nil {
		return took, err
	}
	_, err = d.client.Resume(ctx, d.ref)
	return took, err
}

func (d diskOf) resume(ctx context.Context) (time.Duration, error) {
	if _, err := d.client.Pause(ctx, d.ref); err != nil {
		return 0, err
	}
	return timedOnce(func() error { _, err := d.client.Resume(ctx, d.ref); return err })
}

func (d diskOf) snapshot(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	made, err := d.client.Snapshot(ctx, d.ref, v1.CreateSnapshot{})
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	return took, d.client.DeleteSnapshot(context.WithoutCancel(ctx), made.ID)
}

func (d diskOf) rollback(ctx context.Context) (time.Duration, error) {
	return timedOnce(func() error { _, err := d.client.Rollback(ctx, d.ref, d.point); return err })
}

func (d diskOf) fork(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	made, err := d.client.Fork(ctx, d.ref, v1.ForkSandbox{})
	took := time.Since(began)
	for i := range made {
		err = errors.Join(err, d.client.Delete(context.WithoutCancel(ctx), made[i].ID))
	}
	return took, err
}

// pausedLate is how long an Engine may take to hear from containerd that a container was paused. One that is
// resumed before is on its record as paused from then on.
const pausedLate = 200 * time.Millisecond

func (c *container) timedPause(ctx context.Context) (time.Duration, error) {
	took, err := timedOnce(func() error { return c.do(ctx, "pause") })
	if err != nil {
		return took, err
	}
	return took, errors.Join(sleep(ctx, pausedLate), c.do(ctx, "unpause"), sleep(ctx, pausedLate))
}

func (c *container) timedResume(ctx context.Context) (time.Duration, error) {
	if err := errors.Join(c.do(ctx, "pause"), sleep(ctx, pausedLate)); err != nil {
		return 0, err
	}
	took, err := timedOnce(func() error { return c.do(ctx, "unpause") })
	return took, errors.Join(err, sleep(ctx, pausedLate))
}

func (c *container) timedCommit(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	image, err := c.commit(ctx)
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	return took, c.engine.removeImage(ctx, image)
}

func (c *container) timedFork(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	image, err := c.commit(ctx)
	if err != nil {
		return 0, err
	}
	made, err := c.engine.startContainer(ctx, image, usual())
	took := time.Since(began)
	if made != nil {
		err = errors.Join(err, made.remove(ctx))
	}
	return took, errors.Join(err, c.engine.removeImage(ctx, image))
}

func (s *session) dockerDisk(ctx context.Context, e *engine, us *ours, into *DockerDisk) (err error) {
	c, err := e.startContainer(ctx, engineImage, usual())
	if c != nil {
		defer func() { err = errors.Join(err, c.remove(ctx)) }()
	}
	if err != nil {
		return err
	}
	if _, err := c.exec(ctx, fmt.Sprint(user), nil, growArgv(into.Files)...); err != nil {
		return err
	}
	n := max(2, s.o.pairs()/20)
	return s.us.withDisk(ctx, into.Files, func(native diskOf) error {
		return us.withDisk(ctx, into.Files, func(ours diskOf) error {
			for _, verb := range []struct {
				into  *Compared
				what  string
				n     int
				sides []turn
			}{
				{&into.Pause, "pause", 3 * n, []turn{{Plain, c.timedPause}, {Sockets, ours.pause}, {Native, native.pause}}},
				{&into.Resume, "resume", 3 * n, []turn{{Plain, c.timedResume}, {Sockets, ours.resume}, {Native, native.resume}}},
				{&into.Snapshot, "snapshot", n, []turn{{Plain, c.timedCommit}, {Sockets, ours.snapshot}, {Native, native.snapshot}}},
				{&into.Fork, "fork", n, []turn{{Plain, c.timedFork}, {Sockets, ours.fork}, {Native, native.fork}}},
				{&into.Rollback, "rollback", n, []turn{{Native, native.rollback}, {Sockets, ours.rollback}}},
			} {
				*verb.into, err = s.turns(ctx, fmt.Sprintf("%s, %d files", verb.what, into.Files), verb.n, 1, verb.sides)
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (d *DockerDisks) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	for _, size := range d.Sizes {
		for _, verb := range size.Verbs() {
			verb.rows(row)
		}
	}
}

// Verbs are all that was measured of it.
func (d DockerDisk) Verbs() []Compared {
	return []Compared{d.Pause, d.Resume, d.Snapshot, d.Rollback, d.Fork}
}

func (d *DockerDisks) lines(func(format string, args ...any)) {}
