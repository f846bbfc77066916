// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client that went away ends its calls, and those that became tasks when it could not learn of
// it any more. A task that it knows of goes on.
func TestATaskThatNobodyWasToldOfEndsWithItsConnection(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*delivery, *Task)
		ends bool
	}{
		{"NoTask", func(d *delivery, _ *Task) { d.detach(true) }, true},
		{"TaskBeforeItLeft", func(d *delivery, tk *Task) { tk.begin(); time.Sleep(time.Millisecond); d.detach(true) }, false},
		{"TaskAfterItLeft", func(d *delivery, tk *Task) { d.detach(true); time.Sleep(time.Millisecond); tk.begin() }, true},
		{"TaskAfterItLeftAndCameBack", func(d *delivery, tk *Task) { d.detach(true); tk.begin(); d.attach() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs := newCalls()
			gone := make(chan struct{})
			d := &delivery{grace: 50 * time.Millisecond, abandon: func(d *delivery, since time.Time) { cs.abandon(d, since); close(gone) }}
			d.open("1")
			d.sent()
			d.attach()
			tk := &Task{}
			ctx, done := cs.begin(context.Background(), &Call{delivery: d, Task: tk})
			defer done()
			c.do(d, tk)
			select {
			case <-gone:
			case <-time.After(200 * time.Millisecond): // it came back
			}
			if ended := ctx.Err() != nil; ended != c.ends {
				t.Errorf("the call has ended: %v, want %v", ended, c.ends)
			}
		})
	}
}
