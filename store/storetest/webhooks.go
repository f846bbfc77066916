// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

func webhook(n int) *store.Webhook {
	at := epoch.Add(time.Duration(n) * time.Second)
	return &store.Webhook{
		ID: fmt.Sprintf("wh_%d", n), Project: []string{"a", "b"}[n%2], URL: "https://hooks.example/x", Types: []string{"sandbox", "volume.ready"}, Description: "d €",
		Secret: []byte{0, 1, 2}, OldSecret: []byte{3}, OldUntil: at.Add(time.Hour), Position: 7, Failures: 3, DisabledAt: at.Add(time.Minute), DisabledBy: "system",
		Detail: "503", CreatedAt: at, CreatedBy: "alice", UpdatedAt: at, Format: []string{"", "other"}[n%2],
	}
}

func webhookRecords(t *testing.T, open func(*testing.T) store.Store) {
	t.Run("TheyAreKeptByProject", func(t *testing.T) {
		s := open(t)
		one, two, three := webhook(1), webhook(2), webhook(3)
		three.Types, three.OldSecret, three.OldUntil, three.DisabledAt = nil, nil, time.Time{}, time.Time{}
		for _, w := range []*store.Webhook{three, two, one} {
			update(t, s, func(tx store.Tx) error { return tx.Webhooks().Insert(w) })
		}
		wantCode(t, "a taken id", inUpdate(t, s, func(tx store.Tx) error { return tx.Webhooks().Insert(one) }), fault.Exists)
		one.URL, one.Failures, one.Position = "https://other.example", 4, 9
		update(t, s, func(tx store.Tx) error { return tx.Webhooks().Update(one) })
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Webhooks().Get(one.ID)
			wantSame(t, "Get", got, one)
			if err != nil {
				return err
			}
			all, err := tx.Webhooks().List("b")
			wantSame(t, "List", all, []*store.Webhook{one, three})
			if err != nil {
				return err
			}
			all, err = tx.Webhooks().List("")
			wantSame(t, "of all", all, []*store.Webhook{one, two, three})
			return err
		})
		update(t, s, func(tx store.Tx) error { return tx.Webhooks().Add(&store.Delivery{ID: "d", Webhook: one.ID}) })
		update(t, s, func(tx store.Tx) error { return tx.Webhooks().Delete(one.ID) })
		for name, do := range map[string]func(tx store.Tx) error{
			"Get":      func(tx store.Tx) error { _, err := tx.Webhooks().Get(one.ID); return err },
			"Update":   func(tx store.Tx) error { return tx.Webhooks().Update(one) },
			"Delete":   func(tx store.Tx) error { return tx.Webhooks().Delete(one.ID) },
			"Delivery": func(tx store.Tx) error { _, err := tx.Webhooks().Delivery(one.ID, "d"); return err },
			"Finish":   func(tx store.Tx) error { return tx.Webhooks().Finish(&store.Delivery{ID: "d", Webhook: one.ID}) },
		} {
			if err := inUpdate(t, s, do); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s of one that is gone: got %v", name, err)
			}
		}
	})
	t.Run("TheirDeliveriesAreDueInOrder", func(t *testing.T) {
		s := open(t)
		var all []*store.Delivery
		for i := range 6 {
			d := &store.Delivery{
				ID: fmt.Sprintf("d%d", i), Webhook: "w", EventID: "1-a", Type: "sandbox.started", Body: []byte(`{"n":1}`), Repeats: "d", State: store.DeliveryPending,
				NextAt: epoch.Add(time.Duration(10-i) * time.Second), CreatedAt: epoch, Detail: "x",
			}
			if i == 5 {
				d.Webhook = "another"
			}
			update(t, s, func(tx store.Tx) error { return tx.Webhooks().Add(d) })
			all = append(all, d)
		}
		first := all[0]
		view(t, s, func(tx store.Tx) error {
			due, err := tx.Webhooks().Due("w")
			wantSame(t, "Due", due, first)
			if err != nil {
				return err
			}
			n, err := tx.Webhooks().Pending("w")
			wantSame(t, "Pending", n, 5)
			return err
		})
		first.State, first.Attempts, first.NextAt, first.DoneAt, first.Status, first.Duration, first.Detail = store.DeliveryDone, 2, time.Time{}, epoch.Add(time.Hour), 204, time.Second, ""
		update(t, s, func(tx store.Tx) error { return tx.Webhooks().Finish(first) })
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Webhooks().Delivery("w", first.ID)
			wantSame(t, "one that is delivered", got, first)
			if err != nil {
				return err
			}
			if due, err := tx.Webhooks().Due("w"); err != nil || due.ID != "d1" {
				t.Errorf("then: got %v, %v", due, err)
			}
			if none, err := tx.Webhooks().Due("nosuch"); err != nil || none != nil {
				t.Errorf("of none: got %v, %v", none, err)
			}
			names := func(before int64, state string, limit int) (out []string) {
				page, err := tx.Webhooks().Deliveries("w", before, state, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range page {
					if out = append(out, d.ID); d.Body != nil {
						t.Error("a list has bodies")
					}
				}
				return out
			}
			wantSame(t, "Deliveries", names(0, "", 3), []string{"d4", "d3", "d2"})
			wantSame(t, "the next", names(all[2].Number, "", 3), []string{"d1", "d0"})
			wantSame(t, "of a state", names(0, store.DeliveryDone, 3), []string{"d0"})
			return nil
		})
		for _, d := range all[1:3] {
			d.State = store.DeliveryFailed
			update(t, s, func(tx store.Tx) error { return tx.Webhooks().Finish(d) })
		}
		var n int
		update(t, s, func(tx store.Tx) (err error) { n, err = tx.Webhooks().Prune("w", 1, 10); return err })
		wantSame(t, "pruned", n, 2)
		view(t, s, func(tx store.Tx) error {
			page, err := tx.Webhooks().Deliveries("w", 0, "", 10)
			wantSame(t, "left", len(page), 3)
			return err
		})
	})
}
