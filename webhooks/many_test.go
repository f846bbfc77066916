// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/store"
	"sandpit.dev/webhooks"
)

// listed is a store that counts how often all webhooks are read.
type listed struct {
	store.Store
	n *atomic.Int64
}

type listedTx struct {
	store.Tx
	n *atomic.Int64
}

type listedWebhooks struct {
	store.Webhooks
	n *atomic.Int64
}

func (s listed) View(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.View(ctx, func(tx store.Tx) error { return fn(listedTx{tx, s.n}) })
}

func (s listed) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(listedTx{tx, s.n}) })
}

func (t listedTx) Webhooks() store.Webhooks { return listedWebhooks{t.Tx.Webhooks(), t.n} }

func (w listedWebhooks) List(project string) ([]*store.Webhook, error) {
	if project == "" {
		w.n.Add(1)
	}
	return w.Webhooks.List(project)
}

// done waits until n deliveries of a webhook are done, and returns them, oldest first.
func (h *house) done(c access.Caller, id string, n int) (all []*store.Delivery) {
	h.t.Helper()
	h.await(fmt.Sprint(n, " deliveries"), func() bool {
		var err error
		all, err = h.Deliveries(h.t.Context(), c, id, webhooks.Page{State: store.DeliveryDone, Limit: webhooks.MaxPage})
		must(h.t, err)
		return len(all) >= n
	})
	slices.Reverse(all)
	return all
}

func TestACommitReadsNoWebhooks(t *testing.T) {
	v := receive(t, "", nil)
	h := open(t, trusting(v, "127.0.0.1/32"))
	w, _ := h.create(alice, v.URL)
	h.happen(alice.Project, "first")
	h.done(alice, w.ID, 1)
	before := h.lists.Load()
	for i := range 50 {
		h.happen(alice.Project, fmt.Sprint("n", i))
		h.happen("elsewhere", fmt.Sprint("n", i))
	}
	h.done(alice, w.ID, 51)
	if n := h.lists.Load() - before; n != 0 {
		t.Errorf("all webhooks were read %d times", n)
	}
	// A change of what it is sent holds for what happens from its answer on; control tells that it was looked at.
	control, _ := h.create(alice, v.URL+"/control", "volume")
	for i := range 20 {
		types := []string{[]string{"volume.created", "snapshot"}[i%2]}
		_, err := h.Update(t.Context(), alice, w.ID, webhooks.Change{Types: &types})
		must(t, err)
		h.happen(alice.Project, fmt.Sprint("changed", i))
		h.done(alice, control.ID, i+1)
	}
	must(t, h.Delete(t.Context(), alice, control.ID))
	types := []string{}
	_, err := h.Update(t.Context(), alice, w.ID, webhooks.Change{Types: &types})
	must(t, err)
	h.happen(alice.Project, "last")
	h.done(alice, w.ID, 62)
	var got, want []string
	v.mu.Lock()
	for i, head := range v.heads {
		if head.Get("Sandpit-Webhook") == w.ID && i >= 51 {
			_, text, _ := strings.Cut(string(v.bodies[i]), " ")
			got = append(got, text)
		}
	}
	v.mu.Unlock()
	for i := range 10 {
		want = append(want, fmt.Sprintf("volume.created %q", fmt.Sprint("changed", 2*i)))
	}
	if want = append(want, `volume.created "last"`); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWhatWasPassedOverStaysPassedOver: the record of a webhook is not written for events that it is not sent, and another
// server, or other types, send none of these.
func TestWhatWasPassedOverStaysPassedOver(t *testing.T) {
	v := receive(t, "", nil)
	h := open(t, trusting(v, "127.0.0.1/32"))
	w, _ := h.create(alice, v.URL, "snapshot")
	control, _ := h.create(alice, v.URL+"/control", "volume")
	for i := range 10 {
		h.happen(alice.Project, fmt.Sprint("before", i))
	}
	h.done(alice, control.ID, 10)
	h.end()
	h.begin()
	h.happen(alice.Project, "between")
	h.done(alice, control.ID, 11)
	types := []string{"volume"}
	_, err := h.Update(t.Context(), alice, w.ID, webhooks.Change{Types: &types})
	must(t, err)
	h.happen(alice.Project, "after")
	h.done(alice, control.ID, 12)
	h.done(alice, w.ID, 1)
	all, err := h.Deliveries(t.Context(), alice, w.ID, webhooks.Page{Limit: webhooks.MaxPage})
	must(t, err)
	d, err := one(h, w.ID, all)
	must(t, err)
	if !strings.HasSuffix(string(d.Body), `"after"`) {
		t.Errorf("got %s", d.Body)
	}
}

func one(h *house, id string, all []*store.Delivery) (d *store.Delivery, err error) {
	if len(all) != 1 {
		return nil, fmt.Errorf("got %d deliveries", len(all))
	}
	err = h.db.View(h.t.Context(), func(tx store.Tx) error { d, err = tx.Webhooks().Delivery(id, all[0].ID); return err })
	return d, err
}

// TestReceiversThatHangHoldNobodyUp: the answers are waited for for an hour, so whoever waits for them never comes.
func TestReceiversThatHangHoldNobodyUp(t *testing.T) {
	dead, began, _ := hanging(t)
	good := receive(t, "", nil)
	o := trusting(good, "127.0.0.1/32")
	o.Answer = time.Hour // an attempt is late after two seconds, as shipped
	h := open(t, o)
	quick, _ := h.create(alice, good.URL)
	var hang []*store.Webhook
	for i := range 20 {
		c := bob
		c.Project = fmt.Sprint("hangs", i)
		for n := range 5 {
			w, _ := h.create(c, fmt.Sprintf("%s/%d/%d", dead.URL, i, n))
			hang = append(hang, w)
		}
		h.happen(c.Project, "never taken")
	}
	for range 16 { // these hang on, whatever becomes of the others
		<-began
	}
	for i := range 30 {
		h.happen(alice.Project, fmt.Sprint("n", i))
		h.done(alice, quick.ID, i+1)
	}
	for _, w := range hang {
		c := bob
		c.Project = w.Project
		if d := h.one(c, w.ID); d.State != store.DeliveryPending || d.Attempts != 0 {
			t.Errorf("got %+v", d)
		}
	}
	// One that is slow and does answer comes, too, after what hangs, and is quick again then.
	h.end()
	good.mu.Lock()
	good.answer = func(int, http.ResponseWriter, *http.Request) { time.Sleep(400 * time.Millisecond) }
	good.mu.Unlock()
	h.o.Answer, h.o.Quick = 3*time.Second, 100*time.Millisecond
	h.begin()
	h.happen(alice.Project, "slow")
	h.done(alice, quick.ID, 31)
}

// clock is a clock that is set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

func TestADayOfRetries(t *testing.T) {
	var up atomic.Bool
	v := receive(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := &clock{at: began}
	o := trusting(v, "127.0.0.1/32")
	o.Now = c.now
	h := open(t, o)
	w, _ := h.create(alice, v.URL)
	h.happen(alice.Project, "first")
	h.happen(alice.Project, "second")
	first := func() *store.Delivery {
		t.Helper()
		all, err := h.Deliveries(t.Context(), alice, w.ID, webhooks.Page{Limit: 10})
		must(t, err)
		if len(all) == 0 {
			return new(store.Delivery)
		}
		return all[len(all)-1]
	}
	// pass sets the clock, and has the service look at it.
	pass := func(at time.Time) { c.set(at); h.happen("elsewhere", fmt.Sprint("at", at.UnixNano())) }
	tried := func(n int) *store.Delivery {
		t.Helper()
		h.await(fmt.Sprint("attempt ", n), func() bool { all := first(); return all.Attempts >= n })
		d := first()
		if d.Attempts != n {
			t.Fatalf("%d attempts, not %d", d.Attempts, n)
		}
		return d
	}
	wait := 5 * time.Second
	for n := 1; n < 20; n++ {
		d := tried(n)
		if got := d.NextAt.Sub(c.now()); got != wait || d.State != store.DeliveryPending {
			t.Fatalf("after attempt %d it waits for %v, not %v", n, got, wait)
		}
		pass(d.NextAt.Add(-time.Second)) // too early
		if wait = 2 * wait; wait > 2*time.Hour {
			wait = 2 * time.Hour
		}
		pass(d.NextAt)
	}
	tried(20)
	h.await("its end", func() bool {
		got, err := h.Get(t.Context(), alice, w.ID)
		must(t, err)
		return !got.DisabledAt.IsZero()
	})
	if age := c.now().Sub(began); age < 16*time.Hour || age >= 24*time.Hour {
		t.Errorf("it is switched off after %v", age)
	}
	on := true
	_, err := h.Update(t.Context(), alice, w.ID, webhooks.Change{Enabled: &on})
	must(t, err)
	n := 21
	d := tried(n)
	for ; d.State == store.DeliveryPending; n++ {
		pass(d.NextAt)
		d = tried(n + 1)
	}
	if age := d.DoneAt.Sub(began); d.State != store.DeliveryFailed || age < 24*time.Hour || age > 26*time.Hour {
		t.Fatalf("got %+v after %v", d, age)
	}
	// What comes after it comes then.
	up.Store(true)
	pass(c.now().Add(2 * time.Hour))
	h.done(alice, w.ID, 1)
	all := v.got()
	if last := all[len(all)-1]; last != `volume.created "second"` || slices.Contains(all[:n], last) {
		t.Errorf("got %q", last)
	}
}

// pile adds pending deliveries.
func (h *house) pile(id string, n int) {
	h.t.Helper()
	must(h.t, h.db.Update(h.t.Context(), func(tx store.Tx) error {
		at := time.Now()
		for i := range n {
			if err := tx.Webhooks().Add(&store.Delivery{
				ID: fmt.Sprint("del_", id, i), Webhook: id, EventID: fmt.Sprint(i), Type: "volume.created", Body: fmt.Appendf(nil, "%d volume.created %d", i, i), State: store.DeliveryPending,
				NextAt: at, CreatedAt: at,
			}); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestTenThousandPendingDeliveries(t *testing.T) {
	const most = 10_000
	var up atomic.Bool
	v := receive(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	good := receive(t, "", nil)
	o := trusting(good, "127.0.0.1/32")
	o.Backoff = func(n int) time.Duration {
		if up.Load() {
			return time.Millisecond
		}
		return time.Hour
	}
	h := open(t, o)
	w, _ := h.create(alice, v.URL)
	quick, _ := h.create(alice, good.URL, "snapshot", "volume")
	h.end()
	h.pile(w.ID, most-1)
	h.begin()
	h.await("an attempt that fails", func() bool { got, err := h.Get(t.Context(), alice, w.ID); must(t, err); return got.Failures > 0 })
	h.happen(alice.Project, "the last that fits")
	h.done(alice, quick.ID, 1)
	got, err := h.Get(t.Context(), alice, w.ID)
	must(t, err)
	if !got.DisabledAt.IsZero() {
		t.Fatalf("got %+v", got)
	}
	for i := range 20 {
		h.happen("elsewhere", fmt.Sprint(i))
	}
	h.happen(alice.Project, "one too many")
	h.done(alice, quick.ID, 2)
	if got, err = h.Get(t.Context(), alice, w.ID); err != nil || got.DisabledBy != "system" || !strings.Contains(got.Detail, "10001 deliveries wait") {
		t.Errorf("got %+v, %v", got, err)
	}
	// It is on record, and sent once the webhook is switched on again: all of it in the long form.
	n := 200
	if os.Getenv("SANDPIT_SOAK") != "" {
		n = most + 1
	}
	up.Store(true)
	on := true
	_, err = h.Update(t.Context(), alice, w.ID, webhooks.Change{Enabled: &on})
	must(t, err)
	h.await("them", func() bool { v.mu.Lock(); defer v.mu.Unlock(); return len(v.bodies) > n })
	for i, text := range v.got()[1:n] { // behind the one that failed
		if want := fmt.Sprintf("volume.created %d", i); i < most-1 && text != want {
			t.Fatalf("delivery %d: got %s, want %s", i, text, want)
		}
	}
}
