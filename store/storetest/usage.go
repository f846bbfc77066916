// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"sandpit.dev/store"
)

func usageRecords(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	hour := time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC)
	used := func(project, token string, at time.Time, n int) store.Used {
		f := float64(n)
		return store.Used{Project: project, Token: token, Time: at, Commands: int64(n), ExecTime: time.Duration(n) * time.Second, RunTime: time.Duration(n) * time.Minute,
			CPUSeconds: 1.5 * f, MemorySeconds: 0.25 * f, DiskSeconds: 4 * f, Uploaded: int64(n) << 30, Downloaded: int64(n)}
	}
	update(t, s, func(tx store.Tx) error {
		for _, u := range []store.Used{
			used("a", "x", hour, 1), used("a", "x", hour.Add(59*time.Minute), 2), used("a", "y", hour, 4),
			used("a", "x", hour.Add(time.Hour), 8), used("b", "x", hour, 16),
		} {
			if err := tx.Usage().Add(u); err != nil {
				return err
			}
		}
		return nil
	})
	midnight := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		says string
		q    store.UsageQuery
		want []store.Used
	}{
		{"all", store.UsageQuery{}, []store.Used{used("", "", time.Time{}, 31)}},
		{"of none", store.UsageQuery{Project: "none"}, []store.Used{used("", "", time.Time{}, 0)}},
		{"of a token", store.UsageQuery{Project: "a", Token: "x"}, []store.Used{used("", "", time.Time{}, 11)}},
		{"since", store.UsageQuery{Project: "a", Since: hour.Add(time.Hour)}, []store.Used{used("", "", time.Time{}, 8)}},
		{"until", store.UsageQuery{Project: "a", Until: hour.Add(time.Hour)}, []store.Used{used("", "", time.Time{}, 7)}},
		{"by project and token", store.UsageQuery{ByProject: true, ByToken: true}, []store.Used{used("a", "x", time.Time{}, 11), used("a", "y", time.Time{}, 4), used("b", "x", time.Time{}, 16)}},
		{"by day", store.UsageQuery{ByDay: true}, []store.Used{used("", "", midnight, 23), used("", "", midnight.AddDate(0, 0, 1), 8)}},
		{"by hour", store.UsageQuery{Project: "a", ByHour: true}, []store.Used{used("", "", hour, 7), used("", "", hour.Add(time.Hour), 8)}},
		{"by hour of none", store.UsageQuery{Project: "none", ByHour: true}, nil},
	} {
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Usage().Sum(c.q)
			wantSame(t, c.says, got, c.want)
			return err
		})
	}
}

func usageMeters(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	meter := func(n int, project string) *store.UsageMeter {
		return &store.UsageMeter{Sandbox: boxID(n), Project: project, Token: "x", CPU: 1.5, MemoryMB: 512, DiskMB: 1024, Running: n%2 == 0, Kept: n%2 == 1,
			Run: time.Duration(n) + 1, RunUntil: epoch, DiskUntil: epoch.Add(time.Hour)}
	}
	one, two, three := meter(1, "a"), meter(2, "b"), meter(3, "a")
	b := box(1)
	update(t, s, func(tx store.Tx) error {
		for _, m := range []*store.UsageMeter{three, meter(1, "a"), two} {
			if err := tx.Usage().PutMeter(m); err != nil {
				return err
			}
		}
		one.Run, one.CPU, one.RunUntil = 77, 2, time.Time{}
		if err := tx.Usage().PutMeter(one); err != nil {
			return err
		}
		return tx.Sandboxes().Insert(b)
	})
	view(t, s, func(tx store.Tx) error {
		got, err := tx.Usage().Meter(boxID(1))
		wantSame(t, "one", got, one)
		if err == nil {
			got, err = tx.Usage().Meter(boxID(9))
			wantSame(t, "one that is not there", got, (*store.UsageMeter)(nil))
		}
		return err
	})
	list := func(says, project string, after int, limit int, want ...*store.UsageMeter) {
		t.Helper()
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Usage().Meters(project, boxID(after), limit)
			wantSame(t, says, got, want)
			return err
		})
	}
	list("all", "", 0, 10, one, two, three)
	list("a page", "", 1, 1, two)
	list("of a project", "a", 0, 10, one, three)
	view(t, s, func(tx store.Tx) error {
		got, err := tx.Usage().Tallied(b.ID, b.Revision)
		wantSame(t, "figures", got, store.Tallied{Commands: b.ExecCount, Uploaded: b.BytesUploaded, Downloaded: b.BytesDownloaded, ExecTime: b.ExecTime})
		if err == nil {
			got, err = tx.Usage().Tallied(b.ID, b.Revision+1)
			wantSame(t, "figures of another revision", got, store.Tallied{})
		}
		return err
	})
	update(t, s, func(tx store.Tx) error {
		if err := tx.Usage().DeleteMeter(boxID(9)); err != nil {
			return err
		}
		return tx.Usage().DeleteMeter(boxID(1))
	})
	list("what is left", "", 0, 10, two, three)
}
