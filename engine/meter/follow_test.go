// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// counting is a driver whose instances all are this process, and counts how often they are read. Its figures are real, and it
// has no goroutines, which could not wake those of a bubble.
type counting struct {
	runtime.Driver
	read atomic.Int64
}

type countedInstance struct {
	runtime.Instance
	of *counting
}

func (c *counting) Open(context.Context, runtime.Handle) (runtime.Instance, error) {
	return countedInstance{of: c}, nil
}

func (i countedInstance) Use(context.Context) (runtime.Use, error) {
	i.of.read.Add(1)
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		return runtime.Use{}, err
	}
	return runtime.Use{CPU: time.Duration(own.Utime.Nano()), MemoryBytes: own.Maxrss << 10, MemoryPeak: own.Maxrss << 10, DiskBytes: -1, Tasks: 1}, nil
}

// up are sandboxes that are up, of the projects p and q.
func up(t *testing.T, projects ...string) (store.Store, *counting, []*sandbox.Sandbox) {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	driver := new(counting)
	var boxes []*sandbox.Sandbox
	for _, project := range projects {
		at := time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC) // before a bubble's time begins
		box := &sandbox.Sandbox{ID: sandbox.NewID(), Project: project, Runtime: "memory", State: sandbox.Running, CreatedAt: at, UpdatedAt: at, StartedAt: at, RunningSince: at}
		must(t, db.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(box) }))
		boxes = append(boxes, box)
	}
	return db, driver, boxes
}

func reader(project string) access.Caller {
	return access.Caller{Project: project, Scopes: []access.Scope{access.SandboxesRead}}
}

var errEnough = errors.New("enough")

func TestHoweverManyFollowASandboxIsReadOnce(t *testing.T) {
	db, driver, boxes := up(t, "p", "p")
	synctest.Test(t, func(t *testing.T) {
		s := New(db, map[string]runtime.Driver{"memory": driver}, Options{})
		const followers, times = 5, 6
		ends := make(chan error)
		for range followers {
			n, m := 0, 0
			go func() {
				ends <- s.FollowAll(t.Context(), reader("p"), false, func(r Report) error {
					if len(r.Items) != 2 || r.Sum.Sandboxes != 2 || r.Items[0].Now == nil || r.Sum.Tasks < 2 || r.Host != nil {
						return fmt.Errorf("told of %+v", r)
					}
					if n++; n == times {
						return errEnough
					}
					return nil
				})
			}()
			go func() {
				ends <- s.Follow(t.Context(), reader("p"), string(boxes[0].ID), func(one Stats) error {
					if one.Now == nil {
						return fmt.Errorf("told of %+v", one)
					}
					if m++; m == times {
						return errEnough
					}
					return nil
				})
			}()
		}
		for range 2 * followers {
			if err := <-ends; err != errEnough {
				t.Error(err)
			}
		}
		if got := driver.read.Load(); got != 2*times {
			t.Errorf("2 sandboxes were read %d times for %d followers who were told %d times", got, 2*followers, times)
		}
		if len(s.followers.of) > 0 || s.followers.all != 0 {
			t.Errorf("left are %+v", s.followers.of)
		}
	})
}

func TestNobodysFiguresAreReadMoreThanOnceAMinute(t *testing.T) {
	db, driver, _ := up(t, "p", "q")
	synctest.Test(t, func(t *testing.T) {
		s := New(db, map[string]runtime.Driver{"memory": driver}, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
		defer cancel()
		must(t, s.Run(ctx))
		if got := driver.read.Load(); got != 20 {
			t.Errorf("2 sandboxes were read %d times in 10 minutes", got)
		}
	})
}

func TestFollowingEndsWithTheSandboxAndIsBounded(t *testing.T) {
	db, driver, boxes := up(t, "p", "q")
	synctest.Test(t, func(t *testing.T) {
		s := New(db, map[string]runtime.Driver{"memory": driver}, Options{})
		if err := s.Follow(t.Context(), reader("q"), string(boxes[0].ID), nil); fault.Of(err) != fault.NotFound {
			t.Errorf("another project's: got %v", err)
		}
		if err := s.FollowAll(t.Context(), reader("q"), true, nil); fault.Of(err) != fault.Denied {
			t.Errorf("all: got %v", err)
		}
		if err := s.FollowAll(t.Context(), access.Caller{Project: "p"}, false, nil); fault.Of(err) != fault.Denied {
			t.Errorf("without a scope: got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan error)
		for range maxProjectFollowers {
			go func() {
				ends <- s.FollowAll(ctx, reader("p"), false, func(Report) error { return nil })
			}()
		}
		synctest.Wait()
		if err := s.Follow(ctx, reader("p"), string(boxes[0].ID), nil); fault.Of(err) != fault.Exhausted {
			t.Errorf("one more: got %v", err)
		}
		told := 0
		err := s.Follow(ctx, reader("q"), string(boxes[1].ID), func(one Stats) error {
			if told++; told == 2 { // another project may, until its sandbox goes
				must(t, db.Update(ctx, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxes[1].ID) }))
			}
			return nil
		})
		if fault.Of(err) != fault.NotFound || told != 2 {
			t.Errorf("a deleted one: got %v after %d", err, told)
		}
		cancel()
		for range maxProjectFollowers {
			if err := <-ends; !errors.Is(err, context.Canceled) {
				t.Errorf("who went away: got %v", err)
			}
		}
	})
}

func TestTheHostIsToldToWhoRunsTheServer(t *testing.T) {
	db, driver, _ := up(t, "p", "q")
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := New(db, map[string]runtime.Driver{"memory": driver}, Options{Host: func() (HostUse, error) {
			n++
			return HostUse{CPU: time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) / 2, CPUs: 4, MemoryBytes: int64(n) << 30, MemorySize: 8 << 30, DiskBytes: 8 << 40, DiskSize: 16 << 40, Tasks: 99, TaskLimit: 1000}, nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Minute+time.Second)
		defer cancel()
		must(t, s.Run(ctx))
		root := access.Caller{Project: "p", Scopes: []access.Scope{access.SandboxesRead, access.ServerAdmin}}
		r, err := s.All(t.Context(), root, true)
		must(t, err)
		h := r.Host
		if h == nil || len(h.History) != 60 || h.Now.CPUs != 0.5 || h.History[59].CPUs != 0.5 || h.Now.DiskBytes != 8<<40 || h.CPUs != 4 || n != 62 {
			t.Errorf("after %d readings: got %+v", n, h)
		}
		if len(r.Items) != 2 || len(r.History) < 59 || r.History[0].Tasks != r.Items[0].History[0].Tasks+r.Items[1].History[0].Tasks {
			t.Errorf("got %d sandboxes, %d minutes", len(r.Items), len(r.History))
		}
		if r, err = s.All(t.Context(), reader("p"), false); err != nil || r.Host != nil || len(r.Items) != 1 {
			t.Errorf("a project's token: got %+v, %v", r, err)
		}
	})
}
