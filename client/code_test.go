// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestCode(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this host has no python3, which the memory runtime would run")
	}
	h := open(t)
	id := h.box()
	first, err := h.RunCode(t.Context(), id, v1.RunCode{Code: "x = 6\nprint('hi')"})
	must(t, err)
	if first.Status != "ok" || first.Stdout != "hi\n" {
		t.Errorf("got %+v", first)
	}
	t.Run("Streams", func(t *testing.T) {
		var got []string
		out, err := h.StreamCode(t.Context(), id, v1.RunCode{Code: "import sys\n_ = sys.stdout.buffer.write(b'a\\xff'); sys.stdout.flush()\nx * 7"}, client.CodeSink{
			Started: func(s v1.CodeStarted) error { got = append(got, "in "+s.ContextID); return nil },
			Output:  func(b []byte, stderr bool) error { got = append(got, string(b)); return nil },
			Result:  func(v v1.CodeValue) error { got = append(got, v.Text); return nil },
		})
		must(t, err)
		if all := strings.Join(got, " "); out.Status != "ok" || all != "in "+first.ContextID+" a\xff 42" {
			t.Errorf("got %q, %+v", all, out)
		}
	})
	t.Run("AnErrorOfTheSinkEndsTheStream", func(t *testing.T) {
		enough := errors.New("enough")
		_, err := h.StreamCode(t.Context(), id, v1.RunCode{Code: "1"}, client.CodeSink{Result: func(v1.CodeValue) error { return enough }})
		if !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AProblemIsAFault", func(t *testing.T) {
		_, err := h.StreamCode(t.Context(), id, v1.RunCode{Code: "1", Language: new("cobol")}, client.CodeSink{})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("Contexts", func(t *testing.T) {
		c, err := h.CreateContext(t.Context(), id, v1.CreateContext{Language: "bash"})
		must(t, err)
		if err := h.InterruptContext(t.Context(), id, c.ID); !fault.Is(err, fault.State) {
			t.Errorf("got %v", err)
		}
		again, err := h.RestartContext(t.Context(), id, c.ID)
		must(t, err)
		if again.Starts != 2 {
			t.Errorf("got %+v", again)
		}
		all, err := h.Contexts(t.Context(), id)
		must(t, err)
		if len(all) != 2 || all[1].ID != c.ID {
			t.Errorf("got %+v", all)
		}
		must(t, h.DeleteContext(t.Context(), id, c.ID))
		if _, err := h.Context(t.Context(), id, c.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("got %v", err)
		}
	})
}
