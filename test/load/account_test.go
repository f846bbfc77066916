// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// TestAccountsSurviveKill9 kills the server while sandboxes with an account are made, and in the first milliseconds
// after they were answered. Whatever sandbox the next server has, and whatever was answered is there, has its account; so
// it is where the sandbox is taken down at once, before anything inside had to do with it.
func TestAccountsSurviveKill9(t *testing.T) {
	for name, pool := range map[string]string{"MadeWhenAskedFor": "0", "MadeAhead": "4"} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			ctx := t.Context()
			h.kill()
			h.env = []string{"SANDPIT_POOL=" + pool}
			h.start()
			acknowledged, taken, seen := 0, 0, 0
			rounds := length(8, 400)
			for round := range rounds {
				if pool != "0" {
					eventually(t, "a sandbox is ready in the pool", func() bool {
						info, err := h.client.Info(ctx)
						return err == nil && len(info.Pools) > 0 && info.Pools[0].Ready > 0
					})
				}
				made := h.killedUnderCreate(ctx, round, &taken)
				h.start()
				if made != nil {
					acknowledged++
					if _, err := h.client.Get(ctx, made.ID); err != nil {
						t.Fatalf("round %d: a sandbox that was answered: %v", round, err)
					}
				}
				for box, err := range h.client.List(ctx, client.ListQuery{}) {
					if err != nil {
						t.Fatal(err)
					}
					seen++
					if round%3 == 2 {
						if _, err := h.client.Stop(ctx, box.ID); err != nil {
							t.Fatalf("round %d: %v", round, err)
						}
						if _, err := h.client.Start(ctx, box.ID); err != nil {
							t.Fatalf("round %d: %v", round, err)
						}
					}
					if err := h.hasAccount(ctx, box); err != nil {
						t.Errorf("round %d, answered: %v: %v", round, made != nil, err)
					}
				}
				if err := h.deleteAll(ctx); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d kills, %d creates that were answered, %d of them by a pool, %d sandboxes looked at", rounds, acknowledged, taken, seen)
			if acknowledged == 0 || pool != "0" && taken == 0 {
				t.Error("no create was answered as it was to be")
			}
		})
	}
}

// killedUnderCreate kills the server at a random moment of a create with an account, or as soon as it is answered, and
// returns what was answered. taken counts what a pool gave.
func (h *host) killedUnderCreate(ctx context.Context, round int, taken *int) *v1.Sandbox {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := fmt.Sprintf("dev%d", round)
	c, done, answered := h.client, make(chan struct{}), make(chan struct{})
	var made *v1.Sandbox
	go func() { // it ends with the server, or with ctx
		defer close(done)
		box, _, err := c.Create(ctx, v1.CreateSandbox{Account: &v1.Account{Name: name, Home: "/home/" + name, Workdir: "/srv/work/" + name}})
		if err == nil {
			made = box
			close(answered)
		}
	}()
	switch limit := time.Duration(rand.Int64N(int64(8 * time.Millisecond))); round % 2 {
	case 0: // some moment of the create
		select {
		case <-answered:
		case <-time.After(limit):
		}
	default: // some moment after it
		select {
		case <-answered:
		case <-done: // with an error
		}
		if round%4 == 3 {
			if info, err := c.Info(ctx); err == nil && len(info.Pools) > 0 && info.Pools[0].Hits > 0 {
				*taken++
			}
			<-time.After(limit / 4)
		}
	}
	h.kill()
	cancel() // the client would repeat what broke off
	<-done
	return made
}

// hasAccount runs the first command of a sandbox, which says who it is and where.
func (h *host) hasAccount(ctx context.Context, box *v1.Sandbox) error {
	a := box.Account
	r, err := h.client.Exec(ctx, box.ID, v1.Exec{Command: new(`echo "$(id -un):$(id -gn):$(echo ~):$(pwd):$(stat -c %u . ~ | xargs)"; touch x ~/x; grep -c '^sandbox:' /etc/passwd; ls -A /etc | grep -c sandpit`)})
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("%[1]s:%[1]s:%[2]s:%[3]s:1000 1000\n0\n0\n", a.Name, a.Home, a.Workdir); r.Stdout != want {
		return fmt.Errorf("the sandbox %s says %q %q, want %q", box.ID, r.Stdout, r.Stderr, want)
	}
	if len(r.FilesChanged) != 1 || r.FilesChanged[0].Path != "x" {
		return fmt.Errorf("the sandbox %s: of %s %+v is told to have changed", box.ID, a.Workdir, r.FilesChanged)
	}
	return nil
}
