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

// Travel is what it takes to keep, exchange and copy disks, and to freeze what
// runs on them.
type Travel struct {
	Pause  *Figures `json:"pause"`
	Resume *Figures `json:"resume"`
	Freeze *Figures `json:"freeze"` // the kernel's part of it: until all processes stand still
	Thaw   *Figures `json:"thaw"`   // until they go on
	Disks  []Disk   `json:"disks"`
	Forks  *Forks   `json:"forks"` // of a large workspace
}

// Disk is one workspace under one condition. Times must not depend on the number
// of files.
type Disk struct {
	Files     int      `json:"files"`
	Condition string   `json:"condition"`
	Snapshot  *Figures `json:"snapshot"`
	Rollback  *Figures `json:"rollback"` // until it runs again, where it ran
	Fork      *Figures `json:"fork"`     // until the fork runs
}

// Crowded reports whether a neighbour wrote meanwhile.
func (d Disk) Crowded() bool { return d.Condition == whileNeighbour }

// Live reports whether something ran inside, and wrote.
func (d Disk) Live() bool { return d.Condition == Writing }

// Forks is many forks that are asked for at once.
type Forks struct {
	Count        int      `json:"count"`
	WorkspaceMiB int      `json:"workspace_mib"`
	Seconds      *float64 `json:"seconds"` // until all run: the median over runs
}

// The conditions under which disks are measured.
const (
	whileStopped   = "stopped"
	Idling         = "nothing runs inside"
	Writing        = "a process inside writes"
	whileNeighbour = "a neighbour writes"
)

// disks are the sizes of workspaces, in files; the last one takes minutes to make
// and is left out unless asked for.
var disks = []int{10, 10_000, 1_000_000}

const (
	forkCount = 100
	forkMiB   = 1024
	forkRuns  = 3

	// What writes, inside: 4 KiB at a time as fast as it is let, into one of a
	// few files, so that there is data on its way to the disk at any moment.
	writer = "import os\nb=os.urandom(4096)\nwhile 1:\n for i in range(8):\n  with open(f'busy{i}','wb') as f:\n   for _ in range(2048): f.write(b)"
)

// travel measures all that. n is how often each thing is done.
func (o *ours) travel(ctx context.Context, s *server, n int, million bool) (_ *Travel, err error) {
	t := new(Travel)
	if err := o.pausing(ctx, s, n, t); err != nil {
		return nil, fmt.Errorf("pause and resume: %w", err)
	}
	for _, files := range disks {
		if files == disks[len(disks)-1] && !million {
			continue
		}
		if err := o.disk(ctx, max(10, n/5), files, t); err != nil {
			return nil, fmt.Errorf("a workspace of %d files: %w", files, err)
		}
		if err := settle(ctx, files); err != nil {
			return nil, err
		}
	}
	if t.Forks, err = o.forks(ctx); err != nil {
		return nil, fmt.Errorf("%d forks of %d MiB: %w", forkCount, forkMiB, err)
	}
	return t, nil
}

// with makes a sandbox for fn, without a clock, and deletes it.
func (o *ours) with(ctx context.Context, r v1.CreateSandbox, fn func(ref string) error) (err error) {
	r.IdleTimeoutSeconds = new(int64(0))
	box, _, err := o.client.Create(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.client.Delete(context.WithoutCancel(ctx), box.ID)) }()
	return fn(box.ID)
}

func (o *ours) pausing(ctx context.Context, s *server, n int, t *Travel) error {
	before, err := s.scope().Processes()
	if err != nil {
		return err
	}
	return o.with(ctx, v1.CreateSandbox{}, func(ref string) error {
		if _, err := o.client.StartProcess(ctx, ref, v1.StartProcess{Argv: []string{"sleep", "3600"}, TimeoutSeconds: new(3600.0)}); err != nil {
			return err
		}
		var pause, resume series
		for range n {
			began := time.Now()
			_, err := o.client.Pause(ctx, ref)
			pause.add(time.Since(began), err)
			began = time.Now()
			_, rerr := o.client.Resume(ctx, ref)
			resume.add(time.Since(began), rerr)
			if err := errors.Join(err, rerr); err != nil {
				return err
			}
		}
		t.Pause, t.Resume = pause.figures(), resume.figures()
		pid, err := newcomer(s, before)
		if err != nil {
			return err
		}
		t.Freeze, t.Thaw, err = freezing(ctx, pid, ref, n)
		return err
	})
}

// disk measures one workspace under each condition.
func (o *ours) disk(ctx context.Context, n, files int, t *Travel) error {
	return o.with(ctx, v1.CreateSandbox{DiskMB: new(16 << 10)}, func(ref string) error {
		if err := o.grow(ctx, ref, files); err != nil {
			return err
		}
		point, err := o.client.Snapshot(ctx, ref, v1.CreateSnapshot{})
		if err != nil {
			return err
		}
		at := func(condition string, before func() error) error {
			d := Disk{Files: files, Condition: condition}
			if err := o.timeDisk(ctx, n, ref, point.ID, before, &d); err != nil {
				return fmt.Errorf("%s: %w", condition, err)
			}
			t.Disks = append(t.Disks, d)
			return nil
		}
		nothing := func() error { return nil }
		if _, err := o.client.Stop(ctx, ref); err != nil {
			return err
		}
		if err := at(whileStopped, nothing); err != nil {
			return err
		}
		if _, err := o.client.Start(ctx, ref); err != nil {
			return err
		}
		if err := at(Idling, nothing); err != nil {
			return err
		}
		if err := at(Writing, func() error { return o.startWriting(ctx, ref) }); err != nil {
			return err
		}
		if _, err := o.client.Rollback(ctx, ref, point.ID); err != nil { // ends what writes
			return err
		}
		return o.with(ctx, v1.CreateSandbox{}, func(neighbour string) error {
			if err := o.startWriting(ctx, neighbour); err != nil {
				return err
			}
			return at(whileNeighbour, nothing)
		})
	})
}

// startWriting has a process write inside, and waits until it does.
func (o *ours) startWriting(ctx context.Context, ref string) error {
	if _, err := o.client.StartProcess(ctx, ref, v1.StartProcess{Argv: []string{"python3", "-c", writer}, TimeoutSeconds: new(3600.0)}); err != nil {
		return err
	}
	return o.exec(ctx, ref, v1.Exec{Command: new("until [ -s busy1 ]; do sleep 0.01; done")})
}

// timeDisk does each thing n times. before is called first, and after each
// rollback. What was made is deleted once all was timed: the host's work after a
// delete is not what is measured.
func (o *ours) timeDisk(ctx context.Context, n int, ref, point string, before func() error, d *Disk) (err error) {
	if err := before(); err != nil {
		return err
	}
	var snapshots, forks []string
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, o.deleteAll(ctx, forks))
		for _, id := range snapshots {
			err = errors.Join(err, o.client.DeleteSnapshot(ctx, id))
		}
		err = errors.Join(err, sleep(ctx, calm))
	}()
	snapshot, err := timed(ctx, n, func() error {
		s, err := o.client.Snapshot(ctx, ref, v1.CreateSnapshot{})
		if err == nil {
			snapshots = append(snapshots, s.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	fork, err := timed(ctx, n, func() error {
		made, err := o.client.Fork(ctx, ref, v1.ForkSandbox{})
		for i := range made {
			forks = append(forks, made[i].ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	var rollback series
	for range n {
		began := time.Now()
		_, err := o.client.Rollback(ctx, ref, point)
		rollback.add(time.Since(began), err)
		if err := errors.Join(err, before()); err != nil {
			return err
		}
	}
	d.Snapshot, d.Rollback, d.Fork = snapshot.figures(), rollback.figures(), fork.figures()
	return nil
}

// forks measures many forks of a large workspace.
func (o *ours) forks(ctx context.Context) (*Forks, error) {
	f := &Forks{Count: forkCount, WorkspaceMiB: forkMiB}
	err := o.with(ctx, v1.CreateSandbox{DiskMB: new(4 * forkMiB)}, func(ref string) error {
		program := fmt.Sprintf("import os\nwith open('large','wb') as f:\n for _ in range(%d): f.write(os.urandom(1<<20))\n os.fsync(f.fileno())", forkMiB)
		if err := o.exec(ctx, ref, v1.Exec{Argv: []string{"python3", "-c", program}}); err != nil {
			return err
		}
		var took []float64
		for range forkRuns {
			began := time.Now()
			made, err := o.client.Fork(ctx, ref, v1.ForkSandbox{Count: new(forkCount)})
			took = append(took, time.Since(began).Seconds())
			if err != nil {
				return err
			}
			ids := make([]string, len(made))
			for i := range made {
				ids[i] = made[i].ID
			}
			err = o.exec(ctx, ids[len(ids)-1], v1.Exec{Command: new(fmt.Sprintf("[ $(stat -c %%s large) = %d ]", forkMiB<<20))})
			if err := errors.Join(err, o.deleteAll(ctx, ids)); err != nil {
				return err
			}
		}
		f.Seconds = median(took)
		return nil
	})
	return f, err
}
