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

// prunedUsage deletes the oldest hours of each project, batch by batch, and nothing else.
func prunedUsage(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	first := epoch.Truncate(time.Hour)
	const hours = 30
	update(t, s, func(tx store.Tx) error {
		for _, project := range []string{"a", "a-b", "b"} {
			for h := range hours {
				for _, token := range []string{"x", "y"} {
					if err := tx.Usage().Add(store.Used{Project: project, Token: token, Time: first.Add(time.Duration(h) * time.Hour), Commands: 1}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	before := first.Add(10 * time.Hour)
	prune := func(from string, limit int) (of string, n int) {
		t.Helper()
		update(t, s, func(tx store.Tx) (err error) {
			of, n, err = tx.Usage().Prune(from, before, limit)
			return err
		})
		return of, n
	}
	if of, n := prune("", 3); of != "a" || n < 3 || n > 4 {
		t.Errorf("the first batch: got %d of %q, want 3 or 4 of a", n, of)
	}
	view(t, s, func(tx store.Tx) error {
		got, err := tx.Usage().Sum(store.UsageQuery{Project: "a", ByHour: true})
		if len(got) == 0 || !got[0].Time.Equal(first.Add(2*time.Hour)) {
			t.Errorf("the oldest is left: got %v", got)
		}
		return err
	})
	if of, n := prune("a\x00", 100); of != "a-b" || n != 20 {
		t.Errorf("the next project: got %d of %q, want 20 of a-b", n, of)
	}
	if of, n := prune("a", 100); of != "a" || n != 16 {
		t.Errorf("the rest of the first: got %d of %q, want 16 of a", n, of)
	}
	if of, n := prune("a", 100); of != "a" || n != 0 {
		t.Errorf("when there is none: got %d of %q", n, of)
	}
	if of, _ := prune("b\x00", 100); of != "" {
		t.Errorf("behind the last project: got %q", of)
	}
	view(t, s, func(tx store.Tx) error {
		got, err := tx.Usage().Sum(store.UsageQuery{ByProject: true})
		want := []store.Used{{Project: "a", Commands: 40}, {Project: "a-b", Commands: 40}, {Project: "b", Commands: 60}}
		wantSame(t, "what is left", got, want)
		return err
	})
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
		for n, project := range map[int]string{2: "b", 3: "a", 4: "a"} { // the last has no meter
			other := box(n)
			other.Project = project
			if err := tx.Sandboxes().Insert(other); err != nil {
				return err
			}
		}
		b.Project = "a"
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
	list("of a project after one", "a", 1, 10, three)
	list("a page of a project", "a", 0, 1, one)
	list("of a project that there is not", "c", 0, 10)
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
