// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/store"
	"sandpit.dev/webhooks"
)

func TestDeliveriesComeInTheOrderOfTheCommits(t *testing.T) {
	v := receive(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n%3 != 0 { // each is refused twice
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	h := open(t, trusting(v, "127.0.0.1/32"))
	w, _ := h.create(alice, v.URL)
	var want []string
	for i := range 5 {
		name := fmt.Sprint("n", i)
		h.happen(alice.Project, name)
		for range 3 {
			want = append(want, fmt.Sprintf("volume.created %q", name))
		}
	}
	h.await("all", func() bool {
		all, err := h.Deliveries(t.Context(), alice, w.ID, webhooks.Page{State: store.DeliveryDone, Limit: 10})
		must(t, err)
		return len(all) == 5
	})
	if got := v.got(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// hanging is a receiver that answers nothing until it is told to. It tells of each request's begin and end.
func hanging(t *testing.T) (v *receiver, began, ended chan string) {
	t.Helper()
	began, ended = make(chan string, 1000), make(chan string, 1000)
	v = receive(t, "", func(_ int, _ http.ResponseWriter, r *http.Request) {
		began <- r.URL.Path
		<-r.Context().Done() // whoever asks gives up
		ended <- r.URL.Path
		panic(http.ErrAbortHandler) // an answer could still be read
	})
	return v, began, ended
}

func TestEndpointsOfAProjectThatDoNotAnswerHoldNoOtherProjectUp(t *testing.T) {
	dead, began, _ := hanging(t)
	good := receive(t, "", nil)
	o := trusting(good, "127.0.0.1/32")
	o.Quick = time.Hour
	h := open(t, o)
	for i := range webhooks.MaxWebhooks {
		h.create(bob, fmt.Sprintf("%s/%d", dead.URL, i))
	}
	h.happen(bob.Project, "slow")
	for range 4 {
		<-began // as many as a project may have at once
	}
	var all []*store.Webhook
	var callers []access.Caller
	for i := range 10 { // other projects, and on all of them it waits at no time
		c := alice
		c.Project = fmt.Sprint("p", i)
		w, _ := h.create(c, good.URL)
		all, callers = append(all, w), append(callers, c)
		h.happen(c.Project, "quick")
	}
	for i, w := range all {
		if d := h.tried(callers[i], w.ID, 1)[0]; d.State != store.DeliveryDone {
			t.Errorf("got %+v", d)
		}
	}
	if n := len(began); n != 0 {
		t.Errorf("%d more of the project that does not answer were begun", n)
	}
}

func TestWhatIsBeingSentEndsWithAChange(t *testing.T) {
	slow, began, ended := hanging(t)
	good := receive(t, "", nil)
	o := trusting(good, "127.0.0.1/32")
	o.Backoff = func(int) time.Duration { return time.Hour }
	h := open(t, o)
	ctx := t.Context()
	sending := func(name string) *store.Webhook {
		t.Helper()
		w, _ := h.create(alice, slow.URL+"/"+name, "volume")
		h.happen(alice.Project, name)
		if got := <-began; got != "/"+name {
			t.Fatalf("got %s", got)
		}
		return w
	}
	over := func(name string) {
		t.Helper()
		if got := <-ended; got != "/"+name {
			t.Fatalf("got %s", got)
		}
	}

	// Deleted.
	w := sending("deleted")
	must(t, h.Delete(ctx, alice, w.ID))
	over("deleted")

	// Switched off, and on again: what was being sent is not a failure, and comes.
	off, on := false, true
	w = sending("off")
	got, err := h.Update(ctx, alice, w.ID, webhooks.Change{Enabled: &off})
	must(t, err)
	over("off")
	h.happen(alice.Project, "meanwhile")
	d := h.one(alice, w.ID)
	if d.State != store.DeliveryPending || d.Attempts != 0 || got.Failures != 0 || len(began) != 0 {
		t.Errorf("got %+v of %+v", d, got)
	}

	// Another URL: it is sent there.
	_, err = h.Update(ctx, alice, w.ID, webhooks.Change{Enabled: &on})
	must(t, err)
	if got := <-began; got != "/off" {
		t.Fatalf("got %s", got)
	}
	_, err = h.Update(ctx, alice, w.ID, webhooks.Change{URL: &good.URL})
	must(t, err)
	over("off")
	if d := h.tried(alice, w.ID, 1)[0]; d.State != store.DeliveryDone || d.Attempts != 1 {
		t.Errorf("got %+v", d)
	}
	if got := good.got(); len(got) != 1 || got[0] != `volume.created "off"` {
		t.Errorf("got %q", got)
	}
	must(t, h.Delete(ctx, alice, w.ID))

	// Another secret: what is sent then is signed with it.
	w = sending("rotated")
	_, secret, err := h.Rotate(ctx, alice, w.ID, 0)
	must(t, err)
	over("rotated")
	if got := <-began; got != "/rotated" {
		t.Fatalf("got %s", got)
	}
	slow.mu.Lock()
	head, body := slow.heads[len(slow.heads)-1], slow.bodies[len(slow.bodies)-1]
	slow.mu.Unlock()
	signed := head.Get(webhooks.SignatureHeader)
	if webhooks.Sign(signedAt(t, signed), body, secret) != signed {
		t.Errorf("got %s", signed)
	}
	must(t, h.Delete(ctx, alice, w.ID))
	over("rotated")
}

// TestAURLThatFailedWaitsForNothingOnceItIsAnother: the wait is for the place that failed.
func TestAURLThatFailedWaitsForNothingOnceItIsAnother(t *testing.T) {
	bad := receive(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	good := receive(t, "", nil)
	o := trusting(good, "127.0.0.1/32")
	o.Backoff = func(int) time.Duration { return time.Hour }
	h := open(t, o)
	w, _ := h.create(alice, bad.URL)
	h.happen(alice.Project, "one")
	h.tried(alice, w.ID, 1)
	got, err := h.Update(t.Context(), alice, w.ID, webhooks.Change{URL: &good.URL})
	must(t, err)
	if got.Failures != 0 || got.Detail != "" {
		t.Errorf("got %+v", got)
	}
	h.await("its delivery", func() bool { return h.one(alice, w.ID).State == store.DeliveryDone })
	if all := strings.Join(good.got(), " "); all != `volume.created "one"` {
		t.Errorf("got %s", all)
	}
}
