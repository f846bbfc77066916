// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// volume is a record with every field set, numbered n.
func volume(n int) *sandbox.Volume {
	return &sandbox.Volume{
		ID: volumeID(n), Project: "default", Name: fmt.Sprintf("data-%d", n), Runtime: "memory", SizeMB: 1 << 20,
		State: sandbox.VolumeReady, CreatedAt: epoch, CreatedBy: "alice", ExpiresAt: epoch.Add(6 * time.Hour),
	}
}

func insertVolumes(t *testing.T, s store.Store, all ...*sandbox.Volume) {
	t.Helper()
	update(t, s, func(tx store.Tx) error {
		for _, v := range all {
			if err := tx.Volumes().Insert(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// mounting is the sandbox numbered n with the volumes of these numbers.
func mounting(n int, volumes ...int) *sandbox.Sandbox {
	b := box(n)
	b.Mounts = nil
	for i, v := range volumes {
		b.Mounts = append(b.Mounts, sandbox.Mount{Volume: volumeID(v), Path: fmt.Sprintf("/mnt/%d", i)})
	}
	return b
}

func volumeRecords(t *testing.T, open func(*testing.T) store.Store) {
	get := func(t *testing.T, s store.Store, id sandbox.ID) (got *sandbox.Volume, err error) {
		err = s.View(t.Context(), func(tx store.Tx) (err error) { got, err = tx.Volumes().Get(id); return err })
		return got, err
	}
	names := func(t *testing.T, s store.Store, project string) []string {
		out := []string{}
		view(t, s, func(tx store.Tx) error {
			all, err := tx.Volumes().List(project)
			for _, v := range all {
				out = append(out, v.Project+"/"+v.Name)
			}
			return err
		})
		return out
	}
	users := func(t *testing.T, s store.Store, n int) []sandbox.ID {
		out := []sandbox.ID{}
		view(t, s, func(tx store.Tx) error {
			all, err := tx.Volumes().Users(volumeID(n))
			out = append(out, all...)
			return err
		})
		return out
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		for _, want := range []*sandbox.Volume{volume(1), {ID: volumeID(2), Project: "p", Name: "n"}} {
			insertVolumes(t, s, want)
			got, err := get(t, s, want.ID)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "Get", got, want)
			view(t, s, func(tx store.Tx) error {
				got, err := tx.Volumes().ByName(want.Project, want.Name)
				wantSame(t, "ByName", got, want)
				return err
			})
		}
	})
	t.Run("WhatIsMissingIsNotFound", func(t *testing.T) {
		s := open(t)
		insertVolumes(t, s, volume(1))
		_, err := get(t, s, volumeID(9))
		wantCode(t, "Get", err, fault.NotFound)
		for project, name := range map[string]string{"default": "nothing", "other": volume(1).Name} {
			err = s.View(t.Context(), func(tx store.Tx) error { _, err := tx.Volumes().ByName(project, name); return err })
			wantCode(t, "ByName in "+project, err, fault.NotFound)
		}
		wantCode(t, "Update", inUpdate(t, s, func(tx store.Tx) error { return tx.Volumes().Update(volume(9)) }), fault.NotFound)
		wantCode(t, "Delete", inUpdate(t, s, func(tx store.Tx) error { return tx.Volumes().Delete(volumeID(9)) }), fault.NotFound)
		wantSame(t, "Users", users(t, s, 9), []sandbox.ID{})
	})
	t.Run("NamesAreUniqueInTheirProject", func(t *testing.T) {
		s := open(t)
		insertVolumes(t, s, volume(1))
		for name, change := range map[string]func(*sandbox.Volume){
			"name": func(v *sandbox.Volume) { v.Name = volume(1).Name },
			"id":   func(v *sandbox.Volume) { v.ID = volumeID(1) },
		} {
			other := volume(2)
			change(other)
			err := inUpdate(t, s, func(tx store.Tx) error { return tx.Volumes().Insert(other) })
			wantCode(t, "Insert with a taken "+name, err, fault.Exists)
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("the error %q does not say that it is the %s", err, name)
			}
		}
		other, last := volume(2), volume(3)
		other.Name, other.Project, last.Name = volume(1).Name, "other", "a"
		insertVolumes(t, s, other, last)
		wantSame(t, "all", names(t, s, ""), []string{"default/a", "default/data-1", "other/data-1"})
		wantSame(t, "of one project", names(t, s, "default"), []string{"default/a", "default/data-1"})
		update(t, s, func(tx store.Tx) error { return tx.Volumes().Delete(volumeID(1)) })
		again := volume(4)
		again.Name = volume(1).Name
		insertVolumes(t, s, again)
	})
	t.Run("UpdateReplacesWhatMayChange", func(t *testing.T) {
		s := open(t)
		insertVolumes(t, s, volume(1))
		changed := volume(2)
		changed.ID, changed.Project, changed.SizeMB, changed.State, changed.ExpiresAt = volumeID(1), "other", 7, sandbox.VolumeDeleting, epoch.Add(time.Hour)
		update(t, s, func(tx store.Tx) error { return tx.Volumes().Update(changed) })
		want := volume(1)
		want.SizeMB, want.State, want.ExpiresAt = 7, sandbox.VolumeDeleting, epoch.Add(time.Hour)
		got, err := get(t, s, volumeID(1))
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Get", got, want)
	})
	t.Run("ExpiredAreThoseThatNobodyMounts", func(t *testing.T) {
		s := open(t)
		expired := func(at time.Time, limit int) []sandbox.ID {
			out := []sandbox.ID{}
			view(t, s, func(tx store.Tx) error {
				all, err := tx.Volumes().Expired(at, limit)
				for _, v := range all {
					out = append(out, v.ID)
				}
				return err
			})
			return out
		}
		never, later, first, mounted, deleting := volume(1), volume(2), volume(3), volume(4), volume(5)
		never.ExpiresAt, later.ExpiresAt, deleting.State = time.Time{}, epoch.Add(7*time.Hour), sandbox.VolumeDeleting
		insertVolumes(t, s, never, later, first, mounted, deleting)
		insert(t, s, mounting(1, 4))
		wantSame(t, "before", expired(first.ExpiresAt.Add(-time.Microsecond), 10), []sandbox.ID{})
		wantSame(t, "of the first time", expired(first.ExpiresAt, 10), []sandbox.ID{first.ID})
		wantSame(t, "of both", expired(later.ExpiresAt, 10), []sandbox.ID{first.ID, later.ID})
		wantSame(t, "one", expired(later.ExpiresAt, 1), []sandbox.ID{first.ID})
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(1)) })
		wantSame(t, "when nobody mounts it", expired(first.ExpiresAt, 10), []sandbox.ID{first.ID, mounted.ID})
	})
	t.Run("UsersAreWhoMountsItNow", func(t *testing.T) {
		s := open(t)
		one, two := mounting(1, 1, 2, 1), mounting(2, 2) // the first of them twice
		insert(t, s, two, one, mounting(3))
		wantSame(t, "of the first", users(t, s, 1), []sandbox.ID{boxID(1)})
		wantSame(t, "of the second", users(t, s, 2), []sandbox.ID{boxID(1), boxID(2)})

		two.StopDetail = "another change"
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(two) })
		wantSame(t, "of the second after another change", users(t, s, 2), []sandbox.ID{boxID(1), boxID(2)})
		one.Mounts = mounting(1, 3).Mounts
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(one) })
		wantSame(t, "of the first after it was exchanged", users(t, s, 1), []sandbox.ID{})
		wantSame(t, "of the third", users(t, s, 3), []sandbox.ID{boxID(1)})
		one.Mounts = nil
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(one) })
		wantSame(t, "Revision", one.Revision, int64(3))
		wantSame(t, "of the third when nothing is mounted", users(t, s, 3), []sandbox.ID{})
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(2)) })
		wantSame(t, "of the second after Delete", users(t, s, 2), []sandbox.ID{})
	})
	t.Run("AChangeThatFailsLeavesUsersAlone", func(t *testing.T) {
		s := open(t)
		insert(t, s, mounting(1, 1), mounting(2, 2))
		stale, taken, foreign := mounting(1, 3), mounting(1, 3), mounting(1, 3)
		stale.Revision, taken.Revision, foreign.Revision = 9, 1, 1
		taken.Key, foreign.Project = box(2).Key, "other"
		for name, b := range map[string]*sandbox.Sandbox{"Conflict": stale, "Exists": taken, "NotFound": foreign} {
			// The caller goes on after the error, and commits.
			update(t, s, func(tx store.Tx) error {
				if err := tx.Sandboxes().Update(b); err == nil {
					t.Errorf("%s: it was changed", name)
				}
				return nil
			})
			wantSame(t, name+": of the first", users(t, s, 1), []sandbox.ID{boxID(1)})
			wantSame(t, name+": of the third", users(t, s, 3), []sandbox.ID{})
		}
	})
	t.Run("UsersSeeTheirOwnTransaction", func(t *testing.T) {
		s := open(t)
		update(t, s, func(tx store.Tx) error {
			if err := tx.Sandboxes().Insert(mounting(1, 1)); err != nil {
				return err
			}
			got, err := tx.Volumes().Users(volumeID(1))
			wantSame(t, "Users", got, []sandbox.ID{boxID(1)})
			return err
		})
	})
	t.Run("EitherTheMountOrTheDeleteWins", func(t *testing.T) {
		s := open(t)
		const rounds = 20
		var mounted, deleted atomic.Int64
		for n := range rounds {
			insertVolumes(t, s, volume(n))
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = s.Update(t.Context(), func(tx store.Tx) error {
					if _, err := tx.Volumes().Get(volumeID(n)); err != nil {
						return err
					}
					mounted.Add(1)
					return tx.Sandboxes().Insert(mounting(n, n))
				})
			})
			wg.Go(func() {
				_ = s.Update(t.Context(), func(tx store.Tx) error {
					if all, err := tx.Volumes().Users(volumeID(n)); err != nil || len(all) > 0 {
						return fault.New(fault.Conflict, "mounted")
					}
					deleted.Add(1)
					return tx.Volumes().Delete(volumeID(n))
				})
			})
			wg.Wait()
		}
		wantSame(t, "who won", mounted.Load()+deleted.Load(), int64(rounds))
	})
}
